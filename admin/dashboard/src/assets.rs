//! The files under `admin/dashboard/web`, compiled in: their content, their types, and the version in their URLs.

use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::LazyLock;

macro_rules! files {
    ($($path:literal,)+) => {
        /// Every file except the page itself, by its path. A test compares this list with the folder.
        pub(super) const FILES: &[(&str, &[u8])] =
            &[$(($path, include_bytes!(concat!("../web/", $path))),)+];
    };
}

files! {
    "css/base.css",
    "css/frame.css",
    "css/overview.css",
    "css/pages.css",
    "css/parts.css",
    "css/reference.css",
    "favicon.svg",
    "js/agents.js",
    "js/api.js",
    "js/app.js",
    "js/back.js",
    "js/curl.js",
    "js/download.js",
    "js/exact.js",
    "js/html.js",
    "js/json.js",
    "js/load.js",
    "js/main.js",
    "js/money.js",
    "js/names.js",
    "js/once.js",
    "js/page.js",
    "js/pages/agent.js",
    "js/pages/agent/account-policies.js",
    "js/pages/agent/activity.js",
    "js/pages/agent/caps.js",
    "js/pages/agent/details.js",
    "js/pages/agent/keys.js",
    "js/pages/agent/policy-facts.js",
    "js/pages/agent/policy.js",
    "js/pages/agent/provider-keys.js",
    "js/pages/agent/runs.js",
    "js/pages/agent/without-wallet.js",
    "js/pages/agents.js",
    "js/pages/api-keys.js",
    "js/pages/api-keys/create.js",
    "js/pages/audit.js",
    "js/pages/audit/chain.js",
    "js/pages/audit/changes.js",
    "js/pages/audit/entry.js",
    "js/pages/audit/export.js",
    "js/pages/audit/stream.js",
    "js/pages/audit/types.js",
    "js/pages/calls.js",
    "js/pages/calls/columns.js",
    "js/pages/calls/filters.js",
    "js/pages/connect.js",
    "js/pages/connect/code.js",
    "js/pages/connect/first-call.js",
    "js/pages/connect/key.js",
    "js/pages/connect/snippets.js",
    "js/pages/decision.js",
    "js/pages/escrow.js",
    "js/pages/escrow/actions.js",
    "js/pages/escrow/calls.js",
    "js/pages/escrow/create.js",
    "js/pages/escrow/timeline.js",
    "js/pages/escrows.js",
    "js/pages/intent.js",
    "js/pages/intent/asked.js",
    "js/pages/intent/decide.js",
    "js/pages/intent/spend.js",
    "js/pages/intents.js",
    "js/pages/join.js",
    "js/pages/login.js",
    "js/pages/overview.js",
    "js/pages/overview/caps.js",
    "js/pages/overview/first-steps.js",
    "js/pages/plan.js",
    "js/pages/plan/plans.js",
    "js/pages/reset.js",
    "js/pages/settings.js",
    "js/pages/settings/factor.js",
    "js/pages/settings/password.js",
    "js/pages/settings/sessions.js",
    "js/pages/team.js",
    "js/pages/team/invite.js",
    "js/pages/team/remove.js",
    "js/pages/team/role.js",
    "js/pages/usage.js",
    "js/pages/usage/columns.js",
    "js/pages/usage/links.js",
    "js/pages/usage/sums.js",
    "js/pages/wallet.js",
    "js/pages/wallet/deposit.js",
    "js/pages/wallet/escrowed.js",
    "js/pages/wallet/own.js",
    "js/pages/wallet/transactions.js",
    "js/pages/wallet/transfer.js",
    "js/pages/wallets.js",
    "js/pages/webhook.js",
    "js/pages/webhook/deliveries.js",
    "js/pages/webhook/edit.js",
    "js/pages/webhook/events.js",
    "js/pages/webhook/gate.js",
    "js/pages/webhook/secret.js",
    "js/pages/webhooks.js",
    "js/reasons.js",
    "js/roles.js",
    "js/router.js",
    "js/routes.js",
    "js/session.js",
    "js/store.js",
    "js/theme.js",
    "js/time.js",
    "js/title.js",
    "js/ui/agent-choice.js",
    "js/ui/button.js",
    "js/ui/chart.js",
    "js/ui/dialog.js",
    "js/ui/filters.js",
    "js/ui/follow.js",
    "js/ui/form.js",
    "js/ui/hash.js",
    "js/ui/live.js",
    "js/ui/open.js",
    "js/ui/second-factor.js",
    "js/ui/secret.js",
    "js/ui/show.js",
    "js/ui/state.js",
    "js/ui/table.js",
    "js/ui/tabs.js",
    "js/ui/theme.js",
    "js/ui/who.js",
    "js/words.js",
    "vendor/LICENSE-htm.txt",
    "vendor/LICENSE-preact.txt",
    "vendor/htm-preact-3.1.1.js",
}

/// The page, with [`VERSION_MARK`] in place of the version.
pub(super) const PAGE: &str = include_str!("../web/index.html");
/// Placeholder for the version in the page.
const VERSION_MARK: &str = "@VERSION@";
/// Number of bytes of the hashes that are used: enough to make collisions between builds improbable.
const HASH_BYTES: usize = 10;

static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::new);

/// A file to be served.
#[derive(Debug)]
pub struct Asset {
    /// Uncompressed content.
    pub(super) plain: Bytes,
    /// Compressed content, if it is shorter.
    pub(super) gzip: Option<Bytes>,
    /// `Content-Type`.
    pub(super) kind: &'static str,
    /// `ETag`; weak, since both forms have the same one.
    pub(super) etag: HeaderValue,
}

/// All files.
#[derive(Debug)]
pub(super) struct Assets {
    /// Hash of all files: modules refer to each other by relative paths, so all of them change their URLs together.
    pub(super) version: String,
    /// By path.
    pub(super) files: BTreeMap<&'static str, Asset>,
    /// `index.html`, which names the other files.
    pub(super) page: Asset,
}

impl Assets {
    /// Returns the files, made ready at the first use.
    pub(super) fn get() -> &'static Self {
        &ASSETS
    }

    fn new() -> Self {
        let mut all = Sha256::new();
        for (path, content) in FILES {
            all.update(Sha256::digest(path));
            all.update(Sha256::digest(content));
        }
        let version = short(&all.finalize());
        let page = PAGE.replace(VERSION_MARK, &version);
        Self {
            files: FILES
                .iter()
                .map(|(path, content)| (*path, Asset::new(path, Bytes::from_static(content))))
                .collect(),
            page: Asset::new("index.html", Bytes::from(page)),
            version,
        }
    }
}

impl Asset {
    /// Creates a file with this content, and the type of its name's extension.
    pub fn new(path: &str, plain: Bytes) -> Self {
        let etag = format!("W/\"{}\"", short(&Sha256::digest(&plain)));
        Self {
            gzip: compressed(&plain).filter(|gzip| gzip.len() < plain.len()),
            kind: kind(path),
            etag: HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static("W/\"0\"")),
            plain,
        }
    }
}

fn short(hash: &[u8]) -> String {
    hex::encode(&hash[..HASH_BYTES])
}

/// Compresses the content. Writing to memory does not fail; if it did, the file would be sent uncompressed.
fn compressed(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}
