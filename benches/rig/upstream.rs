//! `bench-upstream`: the provider of the bench, on one thread.

use clap::Parser;
use gate_bench_rig::{tls, upstream};
use std::net::SocketAddr;
use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Options {
    /// Address to listen on.
    listen: SocketAddr,
    /// A certificate: TLS.
    #[arg(long, requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate.
    #[arg(long, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let options = Options::parse();
    let tls = options.tls_cert.zip(options.tls_key);
    let tls = tls.map(|(certificate, key)| tls::acceptor(&certificate, &key));
    let listener = tokio::net::TcpListener::bind(options.listen).await?;
    upstream::serve(listener, tls.transpose()?).await
}
