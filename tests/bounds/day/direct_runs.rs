//! Direct runs of the scripts that no request of a day leads to: intents move to the archive after weeks, coalesced
//! violations become events after their minute.

use super::Person;
use crate::fill::{MODE, aside};
use crate::fixture::Fixture;
use store::intent::IntentRecord;
use store::intent::archive::{ArchivedIntents, INTENTS_MAX, PASSED_MAX};
use store::webhook::script::cursor::{Cursor, waiting};
use store::webhook::script::dispatch::{DispatchCoalesced, DispatchStep, Dispatched, MinuteEnd};

/// Groups of coalesced violations in one step.
const GROUPS: usize = 200;

impl Person {
    pub async fn rare(&self, fixture: &Fixture) {
        self.archive_intents(fixture).await;
        self.coalesce(fixture).await;
    }

    /// Archives the oldest intents. Removing them from their lists passes the places before them, which their caller
    /// counts: an intent that is far behind is not archived.
    async fn archive_intents(&self, fixture: &Fixture) {
        let (store, realm) = (&fixture.store, self.tenant.account.keys.in_mode(MODE));
        let read = IntentRecord::oldest(store, &realm, (0, INTENTS_MAX)).await;
        let intents = read.expect("intents").into_iter();
        let intents: Vec<IntentRecord> = intents
            .filter_map(|(_, fields)| IntentRecord::from_fields(&fields))
            .collect();
        assert_eq!(intents.len(), INTENTS_MAX);
        let mut passed = 0;
        for intent in &intents {
            let places = intent.passed(store, &realm, PASSED_MAX).await.expect("places");
            passed += places.expect("a place near the beginning");
        }
        assert!(passed <= PASSED_MAX, "{passed}");
        let archived = ArchivedIntents {
            segments: 0,
            descriptor: "{}",
            intents: &intents,
        };
        assert!(archived.execute(store, &realm).await.expect("an answer"));
    }

    /// Dispatches violations that wait since a minute long ago. The account has no webhooks by now, so the server's
    /// dispatcher leaves them.
    async fn coalesce(&self, fixture: &Fixture) {
        let (store, keys) = (&fixture.store, &self.tenant.account.keys);
        let realm = keys.in_mode(MODE);
        let field = format!("{MODE}_violations");
        for key in [realm.violations_waiting(), realm.violations_order()] {
            let _: String = fixture.redis.command(&["RENAME", &aside(key.clone()), &key]);
        }
        let _: u64 = fixture.redis.command(&["HSET", &keys.record(), &field, "1"]);
        let found = waiting(store, &realm, GROUPS).await.expect("groups").into_iter();
        let groups: Vec<_> = found.map(|(group, _)| group).collect();
        assert_eq!(groups.len(), GROUPS);
        let step = DispatchStep {
            realm: &realm,
            cursor: Cursor::read(store, &realm).await.expect("a cursor"),
            batches: &[],
            waiting_max: 1,
            history_max: 1,
        };
        assert_eq!(step.cursor.webhooks, 0);
        let dispatch = DispatchCoalesced {
            step,
            minute_end: MinuteEnd::LaterEntry,
            groups: &groups,
        };
        let done = dispatch.execute(store).await.expect("an answer");
        assert_eq!(done, Dispatched::Done { refused: 0 });
    }
}
