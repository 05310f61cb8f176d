//! `tollgate-proxy`: the edge. Everything is in the library `proxy`.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    proxy::run()
}
