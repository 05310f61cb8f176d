//! A store of several servers that loses one of them: money after failover, migrating slots, many edges, and each value
//! of `store.durability`.
#![cfg(test)]

mod blocked;
mod changes;
mod clock;
mod dedicated;
mod deposits;
mod disk;
mod edges;
mod failover;
mod fence;
mod fixture;
mod isolated_master;
mod load;
mod lost;
mod lost_between_steps;
mod lost_freeze;
mod lost_lookup;
mod lost_master;
mod moving;
mod pair;
mod pool;
mod power;
mod prices;
mod repeated_work;
mod replicas;
mod standby;
mod transit_worker;
mod unreachable_master;
