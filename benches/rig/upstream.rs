//! `bench-upstream`: the provider of the bench, on one thread.

use clap::Parser;
use gate_bench_rig::upstream;
use std::net::SocketAddr;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Options {
    /// Where to listen.
    listen: SocketAddr,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let options = Options::parse();
    upstream::serve(tokio::net::TcpListener::bind(options.listen).await?).await
}
