//! What `deploy/` holds, tried as far as it can be without the machines that it is for.
//!
//! * [`installation`]: a whole installation on a store that is configured by `deploy/redis`
//! * [`users`]: the system runs under the store's users, and they can do nothing else
//! * [`restart`]: a store that starts again has all that it had, under these users
//! * [`backup`]: a backup, a disaster, and a restored store that is no fresh budget
//! * [`tls`]: everything speaks to the store over TLS
//! * [`documents`]: what the documents' lines do when they are typed; [`links`]: they can be followed and read
//! * [`settings`]: every variable is a setting; [`mutants`]: the lists of `make mutants` name what is there
//! * [`image`], [`compose`], [`kubernetes`] (read by [`kustomize`]), [`systemd`]: each form of deployment
#![cfg(test)]

mod backup;
mod compose;
mod documents;
mod files;
mod image;
mod installation;
mod kubernetes;
mod kustomize;
mod links;
mod mutants;
mod restart;
mod settings;
mod systemd;
mod tls;
mod users;

/// The programs.
const PROXY: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
