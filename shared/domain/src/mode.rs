//! The two modes of an account. Records of one never mix with those of the other (decision D2).

crate::words! {
    /// Live or test. The proxy is live only.
    pub enum Mode {
        /// Real money and real calls.
        Live = "live",
        /// For trying things out; counts against no plan limit (D53).
        Test = "test",
    }
}
