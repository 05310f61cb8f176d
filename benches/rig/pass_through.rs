//! `bench-pass-through`: Pingora as a proxy that does nothing, the yardstick for what the gate adds. Same Pingora, same
//! allocator, same build profile and as many threads as the edge has in the bench.

use async_trait::async_trait;
use clap::Parser;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};
use std::net::SocketAddr;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Options {
    /// Where to listen.
    listen: SocketAddr,
    /// Where every request goes.
    upstream: SocketAddr,
    /// Worker threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

struct PassThrough(SocketAddr);

#[async_trait]
impl ProxyHttp for PassThrough {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        _ctx: &mut (),
    ) -> pingora_core::Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.0, false, String::new())))
    }
}

fn main() {
    let options = Options::parse();
    // Pingora's connector wants one, although nothing here is encrypted.
    drop(rustls::crypto::ring::default_provider().install_default());
    let conf = ServerConf {
        threads: options.threads,
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, PassThrough(options.upstream));
    service.add_tcp(&options.listen.to_string());
    server.add_service(service);
    server.run_forever();
}
