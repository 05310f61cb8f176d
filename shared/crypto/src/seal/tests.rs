//! Tests that sealed secrets open only for their own record and under the right key.

use super::*;

const OWNER: SealedFor<'static> = SealedFor {
    account: "acct_1",
    agent: "bot",
    provider: "openai",
    key_id: "pk_1",
};

fn keyring(keys: &[u8]) -> Keyring {
    let texts: Vec<String> = keys.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
    Keyring::new(texts.iter().map(String::as_str)).unwrap()
}

#[test]
fn a_key_opens_only_for_its_own_record() {
    let keyring = keyring(&[1]);
    let sealed = keyring.seal(&OWNER, &"sk-secret".into()).unwrap();
    assert!(!sealed.contains("sk-secret"));
    assert_eq!(
        keyring.open(&OWNER, &sealed).unwrap().expose_secret(),
        "sk-secret"
    );
    for other in [
        SealedFor {
            account: "acct_2",
            ..OWNER
        },
        SealedFor {
            agent: "bot2",
            ..OWNER
        },
        SealedFor {
            provider: "other",
            ..OWNER
        },
        SealedFor {
            key_id: "pk_2",
            ..OWNER
        },
    ] {
        assert!(keyring.open(&other, &sealed).is_err(), "{other:?}");
    }
}

#[test]
fn a_webhooks_secret_opens_only_for_its_webhook() {
    let keyring = keyring(&[1]);
    let owner = WebhookSecretOf {
        account: "acct_1",
        mode: Mode::Live,
        webhook: "wh_1",
    };
    let sealed = keyring.seal(&owner, &"a secret of some length".into()).unwrap();
    assert!(keyring.open(&owner, &sealed).is_ok());
    assert!(keyring.is_of(&owner, &sealed, &"a secret of some length".into()));
    for other in ["a secret of some lengtH", "a secret", ""] {
        assert!(!keyring.is_of(&owner, &sealed, &other.into()), "{other}");
    }
    assert!(!keyring.is_of(&OWNER, &sealed, &"a secret of some length".into()));
    let mode = Mode::Test;
    assert!(keyring.open(&WebhookSecretOf { mode, ..owner }, &sealed).is_err());
    let webhook = "wh_2";
    assert!(
        keyring
            .open(&WebhookSecretOf { webhook, ..owner }, &sealed)
            .is_err()
    );
    assert!(keyring.open(&OWNER, &sealed).is_err());
}

#[test]
fn a_second_factor_opens_only_for_its_user() {
    let keyring = keyring(&[1]);
    let owner = TotpSecretOf {
        account: "acct_1",
        user: "usr_1",
    };
    let sealed = keyring.seal(&owner, &"JBSWY3DPEHPK3PXP".into()).unwrap();
    assert!(keyring.open(&owner, &sealed).is_ok());
    let user = "usr_2";
    assert!(keyring.open(&TotpSecretOf { user, ..owner }, &sealed).is_err());
    let account = "acct_2";
    assert!(keyring.open(&TotpSecretOf { account, ..owner }, &sealed).is_err());
}

#[test]
fn any_change_to_the_sealed_text_is_noticed() {
    let keyring = keyring(&[1]);
    let sealed = keyring.seal(&OWNER, &"sk-secret".into()).unwrap();
    for at in 0..sealed.len() {
        let mut bytes = sealed.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(keyring.open(&OWNER, &changed).is_err(), "byte {at}");
        assert!(keyring.open(&OWNER, &sealed[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn rotation_opens_old_keys_and_seals_with_the_new_one() {
    let sealed = keyring(&[1]).seal(&OWNER, &"sk-secret".into()).unwrap();
    let rotated = keyring(&[2, 1]);
    assert!(rotated.open(&OWNER, &sealed).is_ok() && !rotated.is_current(&sealed));
    let renewed = rotated.seal(&OWNER, &"sk-secret".into()).unwrap();
    assert!(rotated.is_current(&renewed) && keyring(&[2]).open(&OWNER, &renewed).is_ok());
    assert!(
        keyring(&[2]).open(&OWNER, &sealed).is_err(),
        "the old master key is gone"
    );
}

#[test]
fn bad_master_keys_are_named_by_position_only() {
    let good = STANDARD.encode([7_u8; 32]);
    let error = Keyring::new([good.as_str(), "c2hvcnQ="].into_iter()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "master key number 2 is not 32 bytes in base64 (44 characters)"
    );
    assert!(Keyring::new(["", " "].into_iter()).is_err());
    assert!(!format!("{:?}", keyring(&[1])).contains(&STANDARD.encode([1_u8; 32])));
}

#[test]
fn a_sealed_text_names_its_master_key() {
    let sealed = keyring(&[1]).seal(&OWNER, &"sk-secret".into()).unwrap();
    assert!(keyring(&[1]).has_key_of(&sealed) && keyring(&[2, 1]).has_key_of(&sealed));
    assert!(!keyring(&[2]).has_key_of(&sealed));
    for nameless in ["", "v1", "v1.x", "v2.x.y"] {
        assert!(keyring(&[1]).has_key_of(nameless), "{nameless}");
    }
}
