//! Cost of the scripts. The figures are printed, not asserted, since they depend on the machine.

use super::Payer;
use crate::world::settlement;
use harness::{Redis, Seed};

const CALLS: u64 = 2_000;

#[tokio::test]
async fn one_command_an_authorize_and_one_a_settle() {
    let redis = Redis::start();
    let store = redis.store();
    let payer = Payer::new(&Seed::new(&store).await).await;
    let first = payer.approve(&store, 100).await;
    settlement(first, 100, 30).execute(&store).await.unwrap();

    let measured = |what: &str| {
        let micros = redis.stat("evalsha", "usec_per_call=").unwrap();
        println!("{what}: {micros} microseconds of the store's CPU");
        let info: String = redis.command(&["INFO", "commandstats"]);
        let sent_whole = info.lines().filter(|line| line.contains("_eval:")).count();
        assert_eq!(
            (redis.calls("evalsha"), sent_whole),
            (CALLS, 0),
            "one command for each: {info}"
        );
        let _: String = redis.command(&["CONFIG", "RESETSTAT"]);
    };
    let _: String = redis.command(&["CONFIG", "RESETSTAT"]);
    let mut names = Vec::new();
    for _ in 0..CALLS {
        names.push(payer.approve(&store, 100).await);
    }
    measured("authorize, approved");
    for name in names {
        settlement(name, 100, 30).execute(&store).await.unwrap();
    }
    measured("settle");
    payer.agent.frozen(true).await;
    let _: String = redis.command(&["CONFIG", "RESETSTAT"]);
    for _ in 0..CALLS {
        payer.authorize(&store, &payer.new_name(), 100).await.unwrap();
    }
    measured("authorize, denied");
    assert_eq!(payer.charged().await, (CALLS + 1) * 30);
}
