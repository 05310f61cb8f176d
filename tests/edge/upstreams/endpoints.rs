//! Responses and embeddings at an upstream by name.

use super::*;

/// Responses and embeddings go to the upstream of their model, too: to its path, with its key, at its prices.
#[tokio::test]
async fn responses_and_embeddings_go_to_the_upstream_of_their_model() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    for upstream in [&three.zeta, &three.alpha] {
        upstream.set(|request| match request.path.contains("embeddings") {
            true => Answer::json(
                200,
                json!({ "data": [], "usage": { "prompt_tokens": 9, "total_tokens": 9 } }),
            ),
            false => {
                let usage = json!({ "input_tokens": 9, "output_tokens": 12, "total_tokens": 21 });
                Answer::json(
                    200,
                    json!({ "status": "completed", "output": [], "usage": usage }),
                )
            }
        });
    }
    let response = |model| json!({ "model": model, "input": "hello", "max_output_tokens": 100 });
    // A token is held for each id.
    let embedding = |model| json!({ "model": model, "input": [1, 2, 3] });
    let bearer = format!("Bearer {ALPHA_KEY}");
    let of_zeta = (&three.zeta, Some(ZETA_KEY), None);
    let of_alpha = (&three.alpha, None, Some(bearer.as_str()));
    for (path, sent, (upstream, api_key, authorization), sent_path, costs) in [
        (
            "/v1/responses",
            response("gpt-4"),
            of_zeta,
            "/openai/responses?api-version=2024-10-21",
            (100 * 3, 12 * 3),
        ),
        (
            "/v1/embeddings",
            embedding("gpt-embed"),
            of_zeta,
            "/openai/deployments/gpt-embed/embeddings?api-version=2024-10-21",
            (3 * 7, 9 * 7),
        ),
        (
            "/v1/responses",
            response("llama"),
            of_alpha,
            "/openai/v1/responses",
            (100 * 5, 12 * 5),
        ),
        (
            "/v1/embeddings",
            embedding("llama-embed"),
            of_alpha,
            "/openai/v1/embeddings",
            (3 * 11, 9 * 11),
        ),
    ] {
        let before = (upstream.arrived(), actor.agent.counters().await.day_nanos);
        let reply = actor.caller.post(path, sent.clone()).await;
        approved(&reply);
        let (estimate, cost) = costs;
        assert_eq!(amounts(&reply), (estimate, Some(cost)), "{sent_path}");
        let received = last(upstream);
        assert_eq!((received.path.as_str(), received.json()), (sent_path, sent));
        assert_eq!(received.header("api-key"), api_key, "{sent_path}");
        assert_eq!(received.header("authorization"), authorization, "{sent_path}");
        let after = (upstream.arrived(), actor.agent.counters().await.day_nanos);
        assert_eq!(after, (before.0 + 1, before.1 + cost), "{sent_path}");
    }
    assert_eq!(three.arrived(), (0, 2, 2));
    assert_eq!(actor.agent.open_holds().await, 0);
}
