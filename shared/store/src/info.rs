//! The reply to `INFO`: a line for each field, `name:value`.

/// Returns the value of a field, if the server reports it.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    info.lines().find_map(value).map(str::trim)
}

/// Returns the value of a field as a number; 0 if it is absent.
pub(super) fn number(info: &str, name: &str) -> u64 {
    field(info, name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the lines of replicas, such as `slave0:ip=…,port=…,state=online,offset=…,lag=1`.
pub(super) fn replica_lines(info: &str) -> impl Iterator<Item = &str> {
    info.lines()
        .filter(|line| line.starts_with("slave") && line.contains(":ip="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let info = "# Memory\r\nused_memory_human:1M\r\nused_memory:7\r\n";
        assert_eq!(field(info, "used_memory"), Some("7"));
        assert_eq!(field(info, "used"), None);
        assert_eq!(
            ["used_memory", "used_memory_human", "maxmemory"].map(|name| number(info, name)),
            [7, 0, 0]
        );
    }
}
