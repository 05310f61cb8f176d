//! `bench-pass-through`: Pingora as a proxy that only forwards, the baseline for the cost of the gate. Same Pingora,
//! same allocator, same build profile and as many threads as the edge has in the bench.

use async_trait::async_trait;
use clap::Parser;
use gate_bench_rig::tls;
use pingora::listeners::tls::TlsSettings;
use pingora::proxy::{ProxyHttp, Session, http_proxy_service};
use pingora::server::Server;
use pingora::server::configuration::ServerConf;
use pingora::upstreams::peer::HttpPeer;
use std::net::SocketAddr;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
struct Options {
    /// Address to listen on.
    listen: SocketAddr,
    /// Address that every request goes to.
    upstream: SocketAddr,
    /// Worker threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// A certificate: TLS on the callers' side, with HTTP/2.
    #[arg(long, requires = "tls_key")]
    tls_cert: Option<String>,
    /// The private key of the certificate.
    #[arg(long, requires = "tls_cert")]
    tls_key: Option<String>,
    /// A file of PEM certificates: TLS on the provider's side, with a certificate that one of them signed.
    #[arg(long)]
    upstream_ca: Option<String>,
}

struct PassThrough {
    upstream: SocketAddr,
    tls: bool,
}

#[async_trait]
impl ProxyHttp for PassThrough {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _session: &mut Session, _ctx: &mut ()) -> pingora::Result<Box<HttpPeer>> {
        let name = if self.tls { tls::NAME } else { "" };
        Ok(Box::new(HttpPeer::new(self.upstream, self.tls, name.to_owned())))
    }
}

fn main() -> pingora::Result<()> {
    let options = Options::parse();
    // Pingora's connector requires a TLS provider, even if nothing is encrypted.
    tls::install();
    let proxy = PassThrough {
        upstream: options.upstream,
        tls: options.upstream_ca.is_some(),
    };
    let conf = ServerConf {
        threads: options.threads,
        ca_file: options.upstream_ca,
        // The bench ends it between two sections, when no caller is left.
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, proxy);
    let listen = options.listen.to_string();
    match options.tls_cert.zip(options.tls_key) {
        Some((certificate, key)) => {
            let mut settings = TlsSettings::intermediate(&certificate, &key)?;
            settings.enable_h2();
            service.add_tls_with_settings(&listen, None, settings);
        }
        None => service.add_tcp(&listen),
    }
    server.add_service(service);
    server.run_forever();
}
