//! A TCP proxy that can cut, refuse, swallow or delay traffic, lose replies, and move the clock of a store.

mod clock;
mod gate;

pub use gate::{Gate, GateSide};

use crate::net::{BACKGROUND, free_listener, loopback};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// Bytes passed on at once.
const CHUNK: usize = 64 << 10;
/// Pause between the pieces of a sliced request.
const BETWEEN_PIECES: Duration = Duration::from_millis(1);

/// A wire between a client and `target`. It keeps running until dropped.
#[derive(Debug)]
pub struct Wire {
    state: Arc<WireState>,
    addr: SocketAddr,
    acceptor: AbortHandle,
}

#[derive(Debug)]
struct WireState {
    target: Mutex<SocketAddr>,
    faults: Mutex<Faults>,
    /// Incremented to cut every older connection.
    generation: watch::Sender<u64>,
    /// Notified to send the held requests.
    released: Notify,
    /// Incremented to disconnect all clients, but no server.
    hang_ups: watch::Sender<u64>,
    /// Clients at these addresses are cut off.
    shut_out: watch::Sender<HashSet<IpAddr>>,
    connections: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
    /// True while a held request waits.
    holding: AtomicBool,
    gates: gate::Gates,
}

/// The gate at which the replies of a connection wait, shared by both directions.
type ReplyGate = Arc<Mutex<Option<Gate>>>;

#[derive(Debug, Default, Clone)]
struct Faults {
    refuse: bool,
    swallow_requests: bool,
    swallow_replies: bool,
    hold_requests: bool,
    delay_requests: Duration,
    delay_replies: Duration,
    /// Seconds added to the time in replies of a store.
    clock_ahead: i64,
    lose_reply_to: Option<(Vec<u8>, u32)>,
    replies_lost: u32,
    /// Requests with these bytes are passed on in pieces of this length.
    slice: Option<(Vec<u8>, usize)>,
}

impl Wire {
    /// A wire to `target`.
    pub fn start(target: SocketAddr) -> Self {
        let state = Arc::new(WireState {
            target: Mutex::new(target),
            faults: Mutex::default(),
            generation: watch::Sender::default(),
            released: Notify::default(),
            hang_ups: watch::Sender::default(),
            shut_out: watch::Sender::default(),
            connections: AtomicU64::default(),
            bytes_up: AtomicU64::default(),
            bytes_down: AtomicU64::default(),
            holding: AtomicBool::default(),
            gates: gate::Gates::default(),
        });
        let listener = free_listener();
        let addr = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a listener");
        let accept = accept(listener, state.clone());
        let acceptor = BACKGROUND.spawn(accept).abort_handle();
        Self {
            state,
            addr,
            acceptor,
        }
    }

    /// A wire to a local port, such as `redis.port()`.
    pub fn to_port(port: u16) -> Self {
        Self::start(loopback(port))
    }

    /// The address to connect to.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `redis://127.0.0.1:port` with the wire's own port.
    pub fn redis_url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    fn set(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state.faults.lock());
    }

    /// Connects new clients to another local port. Open connections keep their target.
    pub fn lead_to(&self, port: u16) {
        *self.state.target.lock() = loopback(port);
    }

    /// Cuts every open connection. New ones are served.
    pub fn cut(&self) {
        self.state.generation.send_modify(|generation| *generation += 1);
    }

    /// Closes new connections at once while `on`.
    pub fn refuse(&self, on: bool) {
        self.set(|faults| faults.refuse = on);
    }

    /// Cuts every connection from this address, and closes new ones at once, until [`Wire::let_all_in`].
    pub fn shut_out(&self, from: IpAddr) {
        self.state.shut_out.send_modify(|addresses| {
            addresses.insert(from);
        });
    }

    /// Serves clients at every address again.
    pub fn let_all_in(&self) {
        self.state.shut_out.send_modify(HashSet::clear);
    }

    /// Lets requests through and drops the replies: commands run, and no reply arrives.
    pub fn swallow_replies(&self, on: bool) {
        self.set(|faults| faults.swallow_replies = on);
    }

    /// Drops the requests.
    pub fn swallow_requests(&self, on: bool) {
        self.set(|faults| faults.swallow_requests = on);
    }

    /// Delays each piece of a request.
    pub fn delay_requests(&self, by: Duration) {
        self.set(|faults| faults.delay_requests = by);
    }

    /// Delays each piece of a reply.
    pub fn delay_replies(&self, by: Duration) {
        self.set(|faults| faults.delay_replies = by);
    }

    /// Makes the store's clock appear ahead by `seconds`, or behind: replies to `TIME` and `INFO` are changed. Scripts
    /// keep the store's own clock.
    pub fn move_clock(&self, seconds: i64) {
        self.set(|faults| faults.clock_ahead = seconds);
    }

    /// Holds requests back until [`Wire::release_requests`], also those of a client that disconnects meanwhile.
    pub fn hold_requests(&self) {
        self.set(|faults| faults.hold_requests = true);
    }

    /// Sends the held requests and holds no more.
    pub fn release_requests(&self) {
        self.set(|faults| faults.hold_requests = false);
        self.state.released.notify_waiters();
    }

    /// Disconnects every client and holds nothing new: requests over new connections overtake the held ones, which wait
    /// for [`Wire::release_requests`].
    pub fn overtake_held_requests(&self) {
        self.set(|faults| faults.hold_requests = false);
        self.state.hang_ups.send_modify(|hang_ups| *hang_ups += 1);
    }

    /// Returns true while a request is held back.
    pub fn is_holding(&self) -> bool {
        self.state.holding.load(Ordering::SeqCst)
    }

    /// The next `times` requests that contain `needle` run, but the connection is cut in place of the reply.
    pub fn lose_reply_to(&self, needle: impl Into<Vec<u8>>, times: u32) {
        self.set(|faults| faults.lose_reply_to = Some((needle.into(), times)));
    }

    /// Passes requests with these bytes on in pieces of `length` with pauses, so that a server executes the commands of
    /// a pipeline apart from each other.
    pub fn slice_requests(&self, mark: impl Into<Vec<u8>>, length: usize) {
        self.set(|faults| faults.slice = Some((mark.into(), length)));
    }

    /// Puts a gate on this wire.
    pub fn put_gate(&self, gate: &Gate) {
        self.state.gates.add(gate);
    }

    /// Number of replies that [`Wire::lose_reply_to`] lost.
    pub fn replies_lost(&self) -> u32 {
        self.state.faults().replies_lost
    }

    /// Removes every fault. Open connections stay open.
    pub fn heal(&self) {
        let lost = self.replies_lost();
        self.set(|faults| {
            *faults = Faults {
                replies_lost: lost,
                ..Faults::default()
            }
        });
        self.state.released.notify_waiters();
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Bytes that reached the target, and bytes that reached the client.
    pub fn bytes(&self) -> (u64, u64) {
        (
            self.state.bytes_up.load(Ordering::SeqCst),
            self.state.bytes_down.load(Ordering::SeqCst),
        )
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.cut();
        self.heal();
    }
}

impl WireState {
    fn faults(&self) -> Faults {
        self.faults.lock().clone()
    }

    /// Returns true if the reply to this request is to be lost, and counts it. `before` is the end of the last piece: a
    /// request may come in several.
    fn loses_reply_to(&self, before: &mut Vec<u8>, piece: &[u8]) -> bool {
        let mut faults = self.faults.lock();
        let Some((needle, left)) = &mut faults.lose_reply_to else {
            before.clear();
            return false;
        };
        let request = [before, piece].concat();
        let kept = request.len().saturating_sub(needle.len() - 1);
        *before = request[kept..].to_vec();
        let found = *left > 0 && has(&request, needle);
        if found {
            *left -= 1;
            faults.replies_lost += 1;
        }
        found
    }
}

fn has(request: &[u8], needle: &[u8]) -> bool {
    request.windows(needle.len()).any(|window| window == needle)
}

async fn accept(listener: std::net::TcpListener, state: Arc<WireState>) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((client, from)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        if state.faults().refuse || state.shut_out.borrow().contains(&from.ip()) {
            let _ = client.set_zero_linger();
            continue;
        }
        tokio::spawn(carry(client, from.ip(), state.clone()));
    }
}

async fn carry(client: TcpStream, from: IpAddr, state: Arc<WireState>) {
    let mut generation = state.generation.subscribe();
    let mut shut_out = state.shut_out.subscribe();
    generation.mark_unchanged();
    let target = *state.target.lock();
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let reply_lost = Arc::new(AtomicBool::new(false));
    let reply_gate = ReplyGate::default();
    let up = carry_requests(
        (from_client, to_server),
        state.clone(),
        (reply_lost.clone(), reply_gate.clone()),
    );
    let down = carry_replies((from_server, to_client), state.clone(), (reply_lost, reply_gate));
    // Requests continue when the replies have ended: a held request must arrive although its client is gone.
    let both = async {
        let mut up = tokio::spawn(up);
        tokio::select! {
            _ = &mut up => {}
            () = down => {}
        }
        if state.holding.load(Ordering::SeqCst) {
            let _ = up.await;
        } else {
            up.abort();
        }
    };
    tokio::select! {
        () = both => {}
        _ = generation.changed() => {}
        _ = shut_out.wait_for(|addresses| addresses.contains(&from)) => {}
    }
}

async fn carry_requests(
    (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
    state: Arc<WireState>,
    (reply_lost, reply_gate): (Arc<AtomicBool>, ReplyGate),
) {
    let (mut buffer, mut before) = (vec![0; CHUNK], Vec::new());
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let request = &buffer[..count];
        // Before the faults are read: a release between both must not be missed.
        let released = state.released.notified();
        let faults = state.faults();
        tokio::time::sleep(faults.delay_requests).await;
        if faults.hold_requests {
            state.holding.store(true, Ordering::SeqCst);
            released.await;
            state.holding.store(false, Ordering::SeqCst);
        }
        if faults.swallow_requests {
            before.clear();
            continue;
        }
        if state.loses_reply_to(&mut before, request) {
            reply_lost.store(true, Ordering::SeqCst);
        }
        match state.gates.that_stops(request) {
            Some(gate) if gate.has_replies() => {
                *reply_gate.lock() = Some(gate);
            }
            Some(gate) => {
                gate.note_stopped();
                gate.wait_until_open().await;
            }
            None => {}
        }
        let sliced = faults.slice.as_ref().filter(|(mark, _)| has(request, mark));
        for piece in request.chunks(sliced.map_or(CHUNK, |(_, length)| *length)) {
            if sliced.is_some() {
                tokio::time::sleep(BETWEEN_PIECES).await;
            }
            if to.write_all(piece).await.is_err() {
                return;
            }
        }
        state.bytes_up.fetch_add(count as u64, Ordering::SeqCst);
    }
}

async fn carry_replies(
    (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
    state: Arc<WireState>,
    (reply_lost, reply_gate): (Arc<AtomicBool>, ReplyGate),
) {
    let mut buffer = vec![0; CHUNK];
    let mut hang_ups = state.hang_ups.subscribe();
    hang_ups.mark_unchanged();
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = hang_ups.changed() => return,
        };
        let Ok(mut count @ 1..) = read else { return };
        while state.faults().clock_ahead != 0 && clock::is_cut(&buffer[..count]) && count < CHUNK {
            let Ok(more @ 1..) = from.read(&mut buffer[count..]).await else {
                return;
            };
            count += more;
        }
        if reply_lost.load(Ordering::SeqCst) {
            return;
        }
        let gate = reply_gate.lock().take();
        if let Some(gate) = gate {
            let first = buffer[..count].to_vec();
            let replies = wait_with_replies(&gate, first, &mut from).await;
            if to.write_all(&replies).await.is_err() {
                return;
            }
            continue;
        }
        let faults = state.faults();
        tokio::time::sleep(faults.delay_replies).await;
        if faults.swallow_replies {
            continue;
        }
        if faults.clock_ahead != 0 {
            clock::move_by(&mut buffer[..count], faults.clock_ahead);
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        state.bytes_down.fetch_add(count as u64, Ordering::SeqCst);
    }
}

/// Waits at a gate with the replies that arrive meanwhile, also when the server ends. Returns all of them.
async fn wait_with_replies(gate: &Gate, first: Vec<u8>, from: &mut OwnedReadHalf) -> Vec<u8> {
    let mut replies = first;
    gate.note_stopped();
    loop {
        tokio::select! {
            () = gate.wait_until_open() => return replies,
            read = from.read_buf(&mut replies) => {
                if !matches!(read, Ok(1..)) {
                    gate.wait_until_open().await;
                    return replies;
                }
            }
        }
    }
}
