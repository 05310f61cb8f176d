//! The list of all scripts, for checks of all scripts and for loading them.

use super::Script;
use crate::account::refused::REFUSE;
use crate::agent::freeze::AGENT_FREEZE;
use crate::atomic_read::READ;
use crate::attempts::TAKE_ATTEMPT;
use crate::audit::reseal_checkpoint_key::RESEAL_CHECKPOINT_KEY;
use crate::audit::seal::SEAL;
use crate::blocked::script::BLOCKED;
use crate::call::authorize::AUTHORIZE;
use crate::call::denial_windows::script::DENIAL_WINDOW;
use crate::call::extend::EXTEND;
use crate::call::reap::REAP;
use crate::call::settle::SETTLE;
use crate::call::snapshot::SNAPSHOT;
use crate::call::void::VOID;
use crate::intent::archive::ARCHIVE_INTENTS;
use crate::prices::REPLACE_PRICES;
use crate::prices::tables::{KEEP_TABLE, OFFERED, READ_TABLE};
use crate::provider_key::reseal::RESEAL;
use crate::run::end::RUN_END;
use crate::technical::TECHNICAL;
use crate::threshold::notice::NOTICE;
use crate::versions::fence::FENCE;
use crate::versions::witness::WITNESS;
use crate::{
    account, agent, api_key, audit, deposit, escrow, invitation, lookup, number, policy, provider_key,
    session, spend, transfer, transit, user, virtual_key, wallet, webhook,
};

/// Returns every script, one line for each file. A test compares the list with the sources.
pub fn all() -> Vec<&'static Script> {
    vec![
        &*AUTHORIZE,
        &*EXTEND,
        &*SETTLE,
        &*VOID,
        &*REAP,
        &*DENIAL_WINDOW,
        &*FENCE,
        &*WITNESS,
        &*READ,
        &*account::script::CREATE,
        &*account::script::SET_PLAN,
        &*account::script::ACCEPT,
        &*account::script::ADD_USER,
        &*user::script::CHANGE_USER,
        &*user::script::NOTE,
        &*user::script::ISSUE_RESET,
        &*session::script::USE,
        &*session::script::OPEN,
        &*session::script::END,
        &*invitation::script::CREATE,
        &*invitation::script::REVOKE,
        &*invitation::script::ACCEPT,
        &*number::DRAW,
        &*lookup::script::KEEP,
        &*lookup::script::NOTE,
        &*lookup::script::JOIN,
        &*lookup::script::LEAVE,
        &*TAKE_ATTEMPT,
        &*api_key::script::CREATE,
        &*api_key::script::REVOKE,
        &*api_key::script::count::COUNT,
        &*TECHNICAL,
        &*NOTICE,
        &*BLOCKED,
        &*REFUSE,
        &*AGENT_FREEZE,
        &*agent::script::CREATE,
        &*agent::script::UPDATE,
        &*agent::script::DELETE,
        &*policy::script::SET,
        &*policy::script::DELETE,
        &*wallet::script::OPEN,
        &*deposit::script::MAKE,
        &*deposit::script::CONFIRM,
        &*deposit::script::CANCEL,
        &*transfer::OWN,
        &*transfer::OUT,
        &*transit::script::ARRIVE,
        &*provider_key::STORE,
        &*virtual_key::script::CREATE,
        &*virtual_key::script::REVOKE,
        &*virtual_key::script::FORGET,
        &*spend::SPEND,
        &*spend::DENY,
        &*SNAPSHOT,
        &*RESEAL,
        &*RESEAL_CHECKPOINT_KEY,
        &*RUN_END,
        &*SEAL,
        &*audit::archive::CLAIM_SEGMENT,
        &*audit::archive::ARCHIVE,
        &*audit::archive::FORGET,
        &*ARCHIVE_INTENTS,
        &*REPLACE_PRICES,
        &*KEEP_TABLE,
        &*OFFERED,
        &*READ_TABLE,
        &*escrow::script::CREATE,
        &*escrow::script::LIST,
        &*escrow::script::FUND,
        &*escrow::script::RESOLVE,
        &*escrow::script::BLOCKED,
        &*escrow::script::CLAIM,
        &*webhook::script::CREATE,
        &*webhook::script::UPDATE,
        &*webhook::script::DELETE,
        &*webhook::script::TEST,
        &*webhook::script::RESEAL,
        &*webhook::script::redeliver::REDELIVER,
        &*webhook::script::dispatch::DISPATCH,
        &*webhook::script::dispatch::DISPATCH_COALESCED,
        &*webhook::script::deliver::TAKE,
        &*webhook::script::deliver::FINISH,
        &*webhook::script::deliver::RELEASE,
    ]
}
