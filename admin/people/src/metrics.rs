//! Metrics of signing in.

domain::words! {
    /// Outcome of an attempt to sign in.
    pub enum Login {
        /// Signed in.
        Done = "done",
        /// Wrong password or code, or nobody of that name.
        Wrong = "wrong",
        /// Too many attempts before.
        Locked = "locked",
    }
}

telemetry::metrics! {
    /// Attempts to sign in, by outcome.
    pub struct LoginMetrics {
        /// Attempts to sign in: done, wrong, locked (too many before).
        logins: counters("logins_total", "result", Login::ALL.map(Login::as_str)),
    }
}

impl LoginMetrics {
    /// Counts an attempt.
    pub fn login(&self, login: Login) {
        self.logins[login as usize].inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::registrar::Registrar;

    #[test]
    fn every_outcome_has_its_series_from_the_start() {
        let registrar = Registrar::new("tollgate_admin");
        let metrics = LoginMetrics::new(&registrar).unwrap();
        metrics.login(Login::Locked);
        let text = registrar.text_after(|| {}).unwrap();
        for line in [
            r#"tollgate_admin_logins_total{result="locked"} 1"#,
            r#"tollgate_admin_logins_total{result="done"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        for (at, login) in Login::ALL.into_iter().enumerate() {
            assert_eq!(login as usize, at, "{login:?}");
        }
    }
}
