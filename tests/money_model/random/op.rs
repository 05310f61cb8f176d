//! Random operations. Numbers are turned into concrete wallets, amounts and records when
//! the case is played.

/// An amount, most often one that just fits or just does not.
#[derive(Debug, Clone, Copy)]
pub enum Amount {
    One,
    Small(u64),
    Max,
    /// The payer's balance, and this much more.
    Balance(i64),
    /// The rest under a limit of a spend, plus this.
    Room(Gauge, i64),
    /// The room of the receiver, in steps that doubles can represent there.
    Ceiling(i64),
}

/// A limit of a spend.
#[derive(Debug, Clone, Copy)]
pub enum Gauge {
    Transaction,
    Run,
    Day,
    Month,
    Tracked,
    Wallet,
    Threshold,
}

#[derive(Debug, Clone, Copy)]
pub enum Limit {
    None,
    Zero,
    Small(u64),
    Max,
    /// The amount that is spent already, plus this.
    Spent(u64),
}

#[derive(Debug, Clone, Copy)]
pub struct Policy {
    pub enabled: bool,
    pub run: Limit,
    pub day: Limit,
    pub month: Limit,
    pub txn: Limit,
    pub approval: Limit,
    pub low: Limit,
}

/// The id of a request.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    New,
    /// The key of any earlier request of the account and mode.
    Earlier(usize),
}

#[derive(Debug, Clone, Copy)]
pub enum Op {
    Spend {
        at: usize,
        agent: usize,
        amount: Amount,
        run: Option<usize>,
        key: Key,
        other_plan: bool,
        has_text: bool,
        injection: bool,
    },
    Resolve {
        which: usize,
        grant: bool,
        stale: bool,
    },
    Transfer {
        from: usize,
        to: usize,
        amount: Amount,
        key: Key,
        keyed: bool,
        crash: bool,
        sees_closed: bool,
    },
    Deposit {
        to: usize,
        amount: Amount,
        key: Key,
        keyed: bool,
        pending: bool,
        /// The reference of an earlier one.
        again: Option<usize>,
        sees_closed: bool,
    },
    Confirm {
        which: usize,
        key: Key,
        keyed: bool,
    },
    Cancel {
        which: usize,
    },
    Escrow {
        from: usize,
        to: usize,
        amount: Amount,
        key: Key,
        sees_closed: bool,
    },
    Fund {
        which: usize,
        key: Key,
    },
    Decide {
        which: usize,
        by_payee: bool,
        dispute: bool,
        key: Key,
        crash: bool,
    },
    End {
        which: usize,
        refund: bool,
        crash: bool,
    },
    Deliver {
        which: usize,
        half: bool,
    },
    /// An earlier request once more.
    Again {
        which: usize,
        crash: bool,
    },
    OpenUser {
        at: usize,
    },
    Freeze {
        at: usize,
        agent: usize,
        operator: bool,
        lift: bool,
    },
    NewAgent {
        at: usize,
        agent: usize,
        most: Option<u64>,
    },
    Delete {
        at: usize,
        agent: usize,
    },
    Policy {
        at: usize,
        agent: Option<usize>,
        policy: Policy,
    },
    DropPolicy {
        at: usize,
        which: usize,
    },
}

/// Initial state of a case, beyond two accounts with agents and money.
#[derive(Debug, Clone)]
pub struct Case {
    /// Agents a month and tracked nano-USD of each account's plan.
    pub plans: [(Option<u64>, Option<u64>); 2],
    /// A wallet that is nearly full.
    pub rich: Option<usize>,
    /// An agent whose counters are nearly full.
    pub spent: Option<usize>,
    /// Daily spend limit of the wallet of the first agent of each side.
    pub spend_limit: Option<u64>,
    /// The approval threshold of most second agents.
    pub threshold: Option<u64>,
    /// True for a third agent on each side, with an empty wallet and no policy.
    pub third: bool,
    pub ops: Vec<Op>,
}
