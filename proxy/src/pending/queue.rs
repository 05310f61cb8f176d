//! What waits in memory, bounded, in the order in which it is brought to the store: settlements before voids. A settlement
//! may say that a call cost more than was charged; a void can only give something back, so it makes room where there is none.

use super::item::Item;
use std::collections::BTreeMap;

/// When an item is brought to the store: settlements first, and what waited longest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    is_void: bool,
    number: u64,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    items: BTreeMap<Turn, Item>,
    next: u64,
    limit: usize,
}

impl Queue {
    /// A queue of at most `limit` items.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            items: BTreeMap::new(),
            next: 0,
            limit,
        }
    }

    /// Items that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many more may wait.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// All items.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    /// Lets an item wait. Returns the one that there is no room for: this one, or a void that waited.
    pub fn push(&mut self, item: Item) -> Option<Item> {
        let is_void = matches!(item, Item::Void { .. });
        let mut dropped = None;
        if self.room() == 0 {
            let last = self
                .items
                .last_entry()
                .filter(|last| last.key().is_void && !is_void);
            let Some(last) = last else {
                return Some(item);
            };
            dropped = Some(last.remove());
        }
        let turn = self.turn(is_void);
        self.items.insert(turn, item);
        dropped
    }

    /// A turn behind all others of its kind.
    fn turn(&mut self, is_void: bool) -> Turn {
        self.next += 1;
        Turn {
            is_void,
            number: self.next,
        }
    }

    /// The next items that are wanted: at most `most` of each kind, so that voids have their turns too. They wait on until they
    /// are removed. Beside them, how many are not wanted.
    #[must_use]
    pub fn first(&self, most: usize, is_wanted: impl Fn(&Item) -> bool) -> (Vec<(Turn, Item)>, usize) {
        let (mut first, mut room, mut others) = (Vec::new(), [most; 2], 0);
        for (turn, item) in &self.items {
            let room = &mut room[usize::from(turn.is_void)];
            if !is_wanted(item) {
                others += 1;
            } else if *room > 0 {
                *room -= 1;
                first.push((*turn, item.clone()));
            }
        }
        (first, others)
    }

    /// Forgets an item that waits no longer.
    pub fn remove(&mut self, turn: Turn) {
        self.items.remove(&turn);
    }

    /// Puts an item that has to wait on behind the others, unless it made room meanwhile.
    pub fn put_back(&mut self, turn: Turn) {
        if let Some(item) = self.items.remove(&turn) {
            let turn = self.turn(turn.is_void);
            self.items.insert(turn, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::tests::item as void;
    use super::*;
    use store::call::hold::AsOf;

    fn settlement(id: &str) -> Item {
        Item::Settle {
            name: ["acct_1", "bot", "r", id].map(str::to_owned),
            estimate_nanos: 100,
            cost_nanos: 170,
            how: None,
            epoch: None,
            as_of: AsOf::default(),
        }
    }

    fn items(queue: &Queue) -> Vec<Item> {
        queue.items().cloned().collect()
    }

    #[test]
    fn a_void_takes_no_room_from_a_settlement() {
        let mut queue = Queue::new(2);
        assert_eq!(queue.push(void("allow_1")), None);
        assert_eq!(queue.push(void("allow_2")), None);
        assert_eq!(queue.push(void("allow_3")), Some(void("allow_3")), "full");
        assert_eq!(queue.push(settlement("allow_4")), Some(void("allow_2")));
        assert_eq!(queue.push(settlement("allow_5")), Some(void("allow_1")));
        assert_eq!(queue.push(settlement("allow_6")), Some(settlement("allow_6")));
        assert_eq!(items(&queue), [settlement("allow_4"), settlement("allow_5")]);
        assert_eq!((queue.len(), queue.room()), (2, 0));
    }

    #[test]
    fn settlements_go_first_and_voids_have_their_turns() {
        let mut queue = Queue::new(9);
        for id in ["allow_1", "allow_2", "allow_3"] {
            queue.push(void(id));
            queue.push(settlement(id));
        }
        let first = |queue: &Queue| {
            let (first, others) = queue.first(2, |_| true);
            assert_eq!(others, 0);
            first.into_iter().map(|(_, item)| item).collect::<Vec<_>>()
        };
        assert_eq!(
            first(&queue),
            [
                settlement("allow_1"),
                settlement("allow_2"),
                void("allow_1"),
                void("allow_2")
            ]
        );
        let turns: Vec<Turn> = queue
            .first(2, |_| true)
            .0
            .into_iter()
            .map(|(turn, _)| turn)
            .collect();
        queue.put_back(turns[0]);
        queue.remove(turns[1]);
        queue.remove(turns[2]);
        queue.put_back(turns[2]);
        assert_eq!(
            first(&queue),
            [
                settlement("allow_3"),
                settlement("allow_1"),
                void("allow_2"),
                void("allow_3")
            ]
        );
    }

    #[test]
    fn what_is_not_wanted_stands_in_nobodys_way() {
        let mut queue = Queue::new(9);
        for id in ["allow_1", "allow_2", "allow_3"] {
            queue.push(settlement(id));
            queue.push(void(id));
        }
        let (first, others) = queue.first(1, |item| *item != settlement("allow_1"));
        let first: Vec<Item> = first.into_iter().map(|(_, item)| item).collect();
        assert_eq!((first, others), (vec![settlement("allow_2"), void("allow_1")], 1));
        assert_eq!(queue.first(1, |_| false), (Vec::new(), 6));
    }
}
