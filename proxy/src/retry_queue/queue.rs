//! Bounded queue in memory, in the order of delivery: settlements before voids. A settlement may charge more than the
//! estimate; a void can only refund, so it is dropped for a settlement when the queue is full.

use super::item::RetryItem;
use std::collections::BTreeMap;

/// Order of delivery: settlements first, then by waiting time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    is_void: bool,
    number: u64,
}

/// Bounded queue of items.
#[derive(Debug)]
pub struct Queue {
    items: BTreeMap<QueuePosition, RetryItem>,
    next: u64,
    limit: usize,
}

impl Queue {
    /// Creates a queue of at most `limit` items.
    pub const fn new(limit: usize) -> Self {
        Self {
            items: BTreeMap::new(),
            next: 0,
            limit,
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of items that still fit.
    pub fn free(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// Returns all items in the order of delivery.
    pub fn items(&self) -> impl Iterator<Item = &RetryItem> {
        self.items.values()
    }

    /// Adds an item. Returns the item that does not fit: this one, or a queued void.
    pub fn push(&mut self, item: RetryItem) -> Option<RetryItem> {
        let is_void = matches!(item, RetryItem::Void { .. });
        let mut dropped = None;
        if self.free() == 0 {
            let last = self
                .items
                .last_entry()
                .filter(|last| last.key().is_void && !is_void);
            let Some(last) = last else {
                return Some(item);
            };
            dropped = Some(last.remove());
        }
        let position = self.next_position(is_void);
        self.items.insert(position, item);
        dropped
    }

    /// Returns a position after all others of its kind.
    fn next_position(&mut self, is_void: bool) -> QueuePosition {
        self.next += 1;
        QueuePosition {
            is_void,
            number: self.next,
        }
    }

    /// Returns the next deliverable items, at most `max` of each kind, so that settlements do not starve voids, and the
    /// number of items that are not deliverable. All items stay in the queue.
    pub fn batch(
        &self,
        max: usize,
        is_deliverable: impl Fn(&RetryItem) -> bool,
    ) -> (Vec<(QueuePosition, RetryItem)>, usize) {
        let (mut batch, mut free, mut others) = (Vec::new(), [max; 2], 0);
        for (position, item) in &self.items {
            let free = &mut free[usize::from(position.is_void)];
            if !is_deliverable(item) {
                others += 1;
            } else if *free > 0 {
                *free -= 1;
                batch.push((*position, item.clone()));
            }
        }
        (batch, others)
    }

    /// Removes an item.
    pub fn remove(&mut self, position: QueuePosition) {
        self.items.remove(&position);
    }

    /// Moves an item to the end of the items of its kind, unless it was dropped meanwhile.
    pub fn put_back(&mut self, position: QueuePosition) {
        if let Some(item) = self.items.remove(&position) {
            let position = self.next_position(position.is_void);
            self.items.insert(position, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::tests::{item as void, settlement};
    use super::*;

    fn items(queue: &Queue) -> Vec<RetryItem> {
        queue.items().cloned().collect()
    }

    #[test]
    fn a_full_queue_drops_a_void_for_a_settlement() {
        let mut queue = Queue::new(2);
        assert_eq!(queue.push(void("allow_1")), None);
        assert_eq!(queue.push(void("allow_2")), None);
        assert_eq!(queue.push(void("allow_3")), Some(void("allow_3")), "full");
        assert_eq!(queue.push(settlement("allow_4")), Some(void("allow_2")));
        assert_eq!(queue.push(settlement("allow_5")), Some(void("allow_1")));
        assert_eq!(queue.push(settlement("allow_6")), Some(settlement("allow_6")));
        assert_eq!(items(&queue), [settlement("allow_4"), settlement("allow_5")]);
        assert_eq!((queue.len(), queue.free()), (2, 0));
    }

    #[test]
    fn settlements_go_first_and_do_not_starve_voids() {
        let mut queue = Queue::new(9);
        for id in ["allow_1", "allow_2", "allow_3"] {
            queue.push(void(id));
            queue.push(settlement(id));
        }
        let batch = |queue: &Queue| {
            let (batch, others) = queue.batch(2, |_| true);
            assert_eq!(others, 0);
            batch.into_iter().map(|(_, item)| item).collect::<Vec<_>>()
        };
        assert_eq!(
            batch(&queue),
            [
                settlement("allow_1"),
                settlement("allow_2"),
                void("allow_1"),
                void("allow_2")
            ]
        );
        let positions: Vec<QueuePosition> = queue
            .batch(2, |_| true)
            .0
            .into_iter()
            .map(|(position, _)| position)
            .collect();
        queue.put_back(positions[0]);
        queue.remove(positions[1]);
        queue.remove(positions[2]);
        queue.put_back(positions[2]);
        assert_eq!(
            batch(&queue),
            [
                settlement("allow_3"),
                settlement("allow_1"),
                void("allow_2"),
                void("allow_3")
            ]
        );
    }

    #[test]
    fn undeliverable_items_do_not_block_others() {
        let mut queue = Queue::new(9);
        for id in ["allow_1", "allow_2", "allow_3"] {
            queue.push(settlement(id));
            queue.push(void(id));
        }
        let (batch, others) = queue.batch(1, |item| *item != settlement("allow_1"));
        let batch: Vec<RetryItem> = batch.into_iter().map(|(_, item)| item).collect();
        assert_eq!((batch, others), (vec![settlement("allow_2"), void("allow_1")], 1));
        assert_eq!(queue.batch(1, |_| false), (Vec::new(), 6));
    }
}
