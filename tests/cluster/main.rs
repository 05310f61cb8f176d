//! A store of several servers, and what becomes of money when one of them is lost: failover, moving slots, many edges, and
//! each value of `store.durability`.
#![cfg(test)]

mod away;
mod blocked;
mod changes;
mod dedicated;
mod disk;
mod edges;
mod failover;
mod fence;
mod load;
mod lost;
mod lost_freeze;
mod lost_master;
mod money;
mod moving;
mod numbers;
mod ongoing;
mod pair;
mod pool;
mod power;
mod replicas;
mod standby;
mod transit_worker;
mod world;
