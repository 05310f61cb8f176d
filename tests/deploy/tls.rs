//! Everything that speaks to the store does so over TLS, as docs/guides/deployment.md says: both programs, the
//! operator's command line, the backup, the administrator's redis-cli.

use crate::files::{path, run};
use crate::installation::{Installation, body};
use harness::eventually;
use std::process::Command;
use std::time::Duration;

/// End of the certificate of [`harness::Redis::open_tls_port`]: 4096-01-01, in seconds since 1970.
const CERTIFICATE_ENDS_S: i64 = 67_090_118_400;
/// Longest wait for a first look at the store's certificate, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Opens a TLS port of the store and makes all addresses use it. Returns the certificate.
fn secure(installation: &mut Installation) -> String {
    let (port, cert) = installation.redis().open_tls_port();
    let cert = cert.display().to_string();
    installation.move_to_tls(port, &cert);
    cert
}

#[tokio::test]
async fn everything_speaks_to_the_store_over_tls() {
    let mut installation = Installation::start();
    let cert = secure(&mut installation);
    let (edge, admin) = (installation.edge(), installation.admin());
    let tenant = installation.settle(&edge, &admin).await;
    assert_eq!(tenant.caller.chat(body()).await.status, 200);
    assert_eq!(installation.cli.json(&["ledger", "check"])["ok"], true);
    for (server, name) in [
        (
            &*edge,
            "tollgate_proxy_store_certificate_expires_timestamp_seconds",
        ),
        (
            &*admin,
            "tollgate_admin_store_certificate_expires_timestamp_seconds",
        ),
    ] {
        let ends_s = eventually("the end of the store's certificate", SOON, async || {
            server.metric::<i64>(name).filter(|ends_s| *ends_s > 0)
        });
        assert_eq!(ends_s.await, CERTIFICATE_ENDS_S, "{name}");
    }

    let backups = installation.dir.path().join("backups");
    let backup = |authority: &str| {
        let mut command = Command::new(path("deploy/backup/backup.sh"));
        command
            .env("STORE_URL_FILE", installation.url_file("backup"))
            .env("STORE_CA_FILE", authority)
            .env("BACKUPS", &backups);
        command
    };
    assert!(run(&mut backup(&cert)).starts_with("backup: "));
    let connecting = |authority: &str| {
        let mut command = Command::new(path("deploy/redis/store-cli.sh"));
        command
            .env("STORE_URL_FILE", installation.url_file("administrator"))
            .env("STORE_CA_FILE", authority)
            .args(["ACL", "WHOAMI"]);
        command
    };
    assert_eq!(run(&mut connecting(&cert)), "tollgate-administrator\n");
    // A server without a trusted certificate is refused.
    for mut command in [backup(""), connecting("")] {
        let done = command.output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(
            !done.status.success() && errors.contains("certificate"),
            "{done:?}"
        );
    }
    let stranger = installation.cli.clone().env("TOLLGATE_STORE__CA_FILE", "");
    let done = stranger.run(&["store", "check"]);
    assert!(
        done.code == Some(1) && done.stderr.contains("certificate"),
        "{done:?}"
    );
}
