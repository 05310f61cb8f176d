//! `deploy/`, tested as far as possible without the target machines.
//!
//! * [`installation`]: a whole installation on a store that is configured by `deploy/redis`
//! * [`users`]: the system runs under the store's users, and they can do nothing else
//! * [`restart`]: a restarted store has all its data, under these users
//! * [`backup`]: a backup, a disaster, and a restored store that is not a fresh budget
//! * [`recipes`]: lines of the guides for a store that does not start, and for a restore, do what they say
//! * [`tls`]: every program uses TLS to the store
//! * [`documents`]: commands in the documents work as written; [`links`]: links resolve; [`figures`]: documents
//!   quote the bench as it measured
//! * [`settings`]: every variable is a setting; [`mutants`]: the lists of `make mutants` name existing files
//! * [`image`], [`compose`], [`kubernetes`] (read by [`kustomize`]), [`systemd`]: each form of deployment
#![cfg(test)]

mod backup;
mod compose;
mod documents;
mod figures;
mod files;
mod image;
mod installation;
mod kubernetes;
mod kustomize;
mod links;
mod mutants;
mod recipes;
mod restart;
mod settings;
mod systemd;
mod tls;
mod users;

const PROXY: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
