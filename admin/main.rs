//! `tollgate-admin`: the management API, the operator's command line and the sandbox upstream.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
