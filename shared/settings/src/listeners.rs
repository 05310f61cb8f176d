//! Addresses of the two listeners of each server. No two of them may share a port.

use crate::{BadSettings, Settings};
use std::net::SocketAddr;

/// Validates the addresses of both servers. If two listeners shared a port, half of an edge's connections would reach
/// the wrong one, or one of them would never receive any.
///
/// # Errors
/// [`BadSettings`] names both keys.
pub(crate) fn check(settings: &Settings) -> Result<(), BadSettings> {
    let (proxy, admin) = (&settings.proxy, &settings.admin);
    for (section, listen, ops_listen) in [
        ("proxy", proxy.listen, proxy.ops_listen),
        ("admin", admin.listen, admin.ops_listen),
    ] {
        if overlap(listen, ops_listen) {
            return Err(BadSettings(format!(
                "`{section}.listen` ({listen}) and `{section}.ops_listen` ({ops_listen}) must have different ports"
            )));
        }
    }
    Ok(())
}

/// Returns whether a connection could belong to both. Port 0 selects a free port for each.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (here, there) = (one.ip().to_canonical(), other.ip().to_canonical());
    let shares_address = here == there || here.is_unspecified() || there.is_unspecified();
    one.port() == other.port() && one.port() != 0 && shares_address
}

#[cfg(test)]
mod tests {
    use crate::{BadSettings, load_from};

    fn load(section: &str, listen: &str, ops_listen: &str) -> Result<(), BadSettings> {
        let section = section.to_uppercase();
        let env = [("LISTEN", listen), ("OPS_LISTEN", ops_listen)];
        let env = env.map(|(key, address)| (format!("TOLLGATE_{section}__{key}"), address.to_owned()));
        load_from(None, env.into_iter()).map(drop)
    }

    #[test]
    fn a_port_of_two_listeners_is_refused_by_both_names() {
        for (listen, ops_listen) in [
            ("127.0.0.1:7180", "127.0.0.1:7180"),
            ("0.0.0.0:7180", "127.0.0.1:7180"),
            ("127.0.0.1:7180", "0.0.0.0:7180"),
            ("[::]:7180", "127.0.0.1:7180"),
            ("[::1]:7180", "[::]:7180"),
            ("[::ffff:127.0.0.1]:7180", "127.0.0.1:7180"),
        ] {
            for section in ["proxy", "admin"] {
                let error = load(section, listen, ops_listen).unwrap_err().to_string();
                let both = [format!("`{section}.listen`"), format!("`{section}.ops_listen`")];
                assert!(both.iter().all(|key| error.contains(key.as_str())), "{error}");
            }
        }
    }

    #[test]
    fn other_ports_other_addresses_and_free_ports_are_fine() {
        for (listen, ops_listen) in [
            ("0.0.0.0:7180", "0.0.0.0:7190"),
            ("192.0.2.1:7180", "127.0.0.1:7180"),
            ("127.0.0.1:0", "127.0.0.1:0"),
        ] {
            for section in ["proxy", "admin"] {
                load(section, listen, ops_listen).unwrap();
            }
        }
    }
}
