//! nginx with the configuration of the bench.

use super::{Server, Sides, Stage};
use std::error::Error;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// TLS directives for the side of the callers. The protocols are those of the other contenders: by default, nginx
/// before 1.23 leaves TLS 1.3 out.
fn front(stage: &Stage) -> String {
    let certificates = &stage.certificates;
    format!(
        "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.2 TLSv1.3;",
        certificates.chain.display(),
        certificates.key.display()
    )
}

/// TLS directives for the side of the provider. They verify its certificate, as the other contenders do.
fn provider_tls(stage: &Stage) -> String {
    format!(
        "proxy_ssl_trusted_certificate {}; proxy_ssl_verify on; proxy_ssl_name {}; proxy_ssl_server_name on; \
         proxy_ssl_protocols TLSv1.2 TLSv1.3;",
        stage.certificates.authority.display(),
        gate_bench_rig::tls::NAME
    )
}

fn configuration(stage: &Stage, dir: &Path, at: SocketAddr, upstream: SocketAddr, sides: Sides) -> String {
    let mut listen = at.to_string();
    if sides.front_tls {
        let _ = write!(listen, " ssl http2");
    }
    let text = |wanted: bool, text: String| if wanted { text } else { String::new() };
    include_str!("../../nginx.conf")
        .replace("@dir@", &dir.display().to_string())
        .replace("@listen@", &listen)
        .replace("@upstream@", &upstream.to_string())
        .replace("@scheme@", if sides.back_tls { "https" } else { "http" })
        .replace("@tls@", &text(sides.front_tls, front(stage)))
        .replace("@upstream_tls@", &text(sides.back_tls, provider_tls(stage)))
}

pub(crate) fn start(
    stage: &Stage,
    at: SocketAddr,
    upstream: SocketAddr,
    sides: Sides,
) -> Result<Server, Box<dyn Error>> {
    let dir = stage.dir().join(format!("nginx-{}", at.port()));
    std::fs::create_dir_all(&dir)?;
    let (file, log) = (dir.join("nginx.conf"), dir.join("error.log"));
    std::fs::write(&file, configuration(stage, &dir, at, upstream, sides))?;
    let words = [
        "-e",
        &log.display().to_string(),
        "-p",
        &dir.display().to_string(),
        "-c",
        &file.display().to_string(),
    ];
    Server::start("nginx", at, &words.map(str::to_owned), 1).map_err(|error| {
        let log_text = std::fs::read_to_string(&log).unwrap_or_default();
        format!("{error} {log_text}").into()
    })
}
