//! An upstream as the log names it, and the log's lines about failures on the way to it.

use super::failure::{BreakOff, NoAnswer, UpstreamFailure, local_shortage, system_error};

/// Name and address of an upstream.
#[derive(Debug)]
pub struct Destination {
    /// Its provider, as in the line of a decision (`upstream.name`) and in metrics.
    pub name: String,
    /// `host:port`
    pub address: String,
}

impl Destination {
    /// Creates the destination of the upstream with this name.
    pub fn new(name: &str, host: &str, port: u16) -> Self {
        let address = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        Self {
            name: name.to_owned(),
            address,
        }
    }

    /// Distinguishes a failure to connect that this machine causes from one on the way to the provider. Logs both.
    pub fn not_connected(&self, error: &pingora::Error) -> NoAnswer {
        match local_shortage(error.root_cause()) {
            Some(error) => {
                let Self { name, address } = self;
                tracing::error!(
                    upstream.name = name,
                    upstream.address = address,
                    %error,
                    "this machine cannot connect to the provider"
                );
                NoAnswer::NotSent
            }
            None => self.lost(BreakOff::Connect, error).into(),
        }
    }

    /// Logs a failure with its cause.
    pub fn lost(&self, at: BreakOff, error: &pingora::Error) -> UpstreamFailure {
        self.unreachable(at, &cause(at, error))
    }

    /// Logs that the provider's name has no address, with the last error of its resolution.
    pub fn unresolved(&self, error: &str) -> UpstreamFailure {
        self.unreachable(BreakOff::Resolve, error)
    }

    fn unreachable(&self, at: BreakOff, cause: &str) -> UpstreamFailure {
        let Self { name, address } = self;
        tracing::warn!(
            upstream.name = name,
            upstream.address = address,
            upstream.stage = at.as_str(),
            upstream.error = cause,
            "the provider could not be reached"
        );
        UpstreamFailure::Unreachable(at)
    }
}

/// Returns the kind of an error, and its cause. An error about an answer can quote it, and so the prompt: of these only
/// the system's cause is named.
fn cause(at: BreakOff, error: &pingora::Error) -> String {
    let first = first_error(error);
    let kind = first.etype.as_str();
    let of_system = system_error(error.root_cause()).map(ToString::to_string);
    let text = of_system.or_else(|| {
        let context = first.context.as_ref().filter(|_| at == BreakOff::Connect)?;
        Some(context.as_str().to_owned())
    });
    match text {
        Some(text) => format!("{kind}: {text}"),
        None => kind.to_owned(),
    }
}

/// Returns the error of Pingora that the others were made of. Its own cause may be a mere address.
fn first_error(mut error: &pingora::Error) -> &pingora::Error {
    while let Some(before) = error
        .cause
        .as_ref()
        .and_then(|cause| cause.downcast_ref::<pingora::BError>())
    {
        error = before;
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use pingora::ErrorType::{ConnectError, ConnectRefused, InternalError, InvalidHTTPHeader, ReadError};
    use std::io;

    fn upstream() -> Destination {
        Destination::new("openai", "api.example.com", 443)
    }

    #[test]
    fn an_address_has_the_form_of_a_url() {
        let address = |host: &str| Destination::new("azure", host, 80).address;
        assert_eq!(address("api.example.com"), "api.example.com:80");
        assert_eq!(address("::1"), "[::1]:80");
    }

    #[test]
    fn a_cause_quotes_no_answer() {
        let refused = io::Error::from_raw_os_error(Errno::ECONNREFUSED as i32);
        let refused = pingora::Error::because(ConnectRefused, "socket", refused);
        let wrapped = pingora::Error::because(InternalError, "Fail to connect", refused);
        let text = cause(BreakOff::Connect, &wrapped);
        assert_eq!(text, "ConnectRefused: Connection refused (os error 111)");
        let explained = pingora::Error::explain(ConnectError, "TLS connect() failed");
        assert_eq!(
            cause(BreakOff::Connect, &explained),
            "ConnectError: TLS connect() failed"
        );
        let quoting = pingora::Error::explain(InvalidHTTPHeader, "buf: canary");
        assert_eq!(cause(BreakOff::Head, &quoting), "InvalidHTTPHeader");
        let reset = io::Error::from_raw_os_error(Errno::ECONNRESET as i32);
        let reset = pingora::Error::because(ReadError, "after canary", reset);
        let text = cause(BreakOff::Body, &reset);
        assert_eq!(text, "ReadError: Connection reset by peer (os error 104)");
    }

    #[test]
    fn only_a_local_shortage_is_not_sent() {
        let wrapped = |code: Errno| {
            let system = io::Error::from_raw_os_error(code as i32);
            let socket = pingora::Error::because(ConnectError, "failed to create socket", system);
            pingora::Error::because(InternalError, "Fail to connect", socket)
        };
        for code in [
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::ENOMEM,
            Errno::ENOBUFS,
            Errno::EADDRNOTAVAIL,
        ] {
            let failure = upstream().not_connected(&wrapped(code));
            assert!(matches!(failure, NoAnswer::NotSent), "{code}: {failure:?}");
        }
        for code in [
            Errno::ECONNREFUSED,
            Errno::ETIMEDOUT,
            Errno::ENETUNREACH,
            Errno::ECONNRESET,
        ] {
            let failure = upstream().not_connected(&wrapped(code));
            assert!(
                matches!(
                    failure,
                    NoAnswer::Failed(UpstreamFailure::Unreachable(BreakOff::Connect))
                ),
                "{code}: {failure:?}"
            );
        }
        let no_system = pingora::Error::explain(ConnectRefused, "no");
        assert!(matches!(
            upstream().not_connected(&no_system),
            NoAnswer::Failed(UpstreamFailure::Unreachable(BreakOff::Connect))
        ));
    }
}
