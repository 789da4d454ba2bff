//! How one certificate is issued: an account, an order, its proofs, a key, the chain.

use std::io;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};

use crate::config::acme::{Acme, ExternalAccount};
use crate::tls::acme::challenges::Challenges;
use crate::tls::acme::store::Store;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Authority(#[from] Error),
    #[error("the account or the certificate cannot be kept: {0}")]
    Store(#[from] io::Error),
    #[error("{0}")]
    ExternalAccount(String),
    #[error("the authority offers no proof over HTTP")]
    NoChallenge,
    #[error("{}", .0.as_deref().unwrap_or("the authority found the proof wanting"))]
    Refused(Option<String>),
    #[error("the authority took more than {0:?}")]
    Timeout(Duration),
}

/// How long the authority may take to check proofs, and then to sign.
const AUTHORITY_TIMEOUT: Duration = Duration::from_secs(120);

/// The account of earlier runs, or a new one.
pub(crate) async fn account(acme: &Acme, store: &Store) -> Result<Account, Failure> {
    let builder = match &acme.root {
        Some(root) => Account::builder_with_root(root)?,
        None => Account::builder()?,
    };
    if let Some(credentials) = store.account(&acme.directory)? {
        return Ok(builder.from_credentials(credentials).await?);
    }
    let external = acme.external_account.as_ref().map(ExternalAccount::load);
    let external = external.transpose().map_err(Failure::ExternalAccount)?;
    let contact: Vec<_> = acme.contacts.iter().map(String::as_str).collect();
    let terms = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let (account, credentials) =
        builder.create(&terms, acme.directory.clone(), external.as_ref()).await?;
    store.keep_account(&acme.directory, &credentials)?;
    Ok(account)
}

/// A new key with the chain of its certificate, as PEM.
pub(crate) async fn certificate(
    account: &Account,
    host: &str,
    challenges: &Challenges,
) -> Result<String, Failure> {
    let hosts = [Identifier::Dns(host.into())];
    let mut order = account.new_order(&NewOrder::new(&hosts)).await?;
    let mut posted = challenges.post();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let challenge = authorization.challenge(ChallengeType::Http01);
        let mut challenge = challenge.ok_or(Failure::NoChallenge)?;
        posted.add(&challenge.token, challenge.key_authorization().as_str());
        challenge.set_ready().await?;
    }
    let patience = RetryPolicy::new().timeout(AUTHORITY_TIMEOUT);
    if order.poll_ready(&patience).await? != OrderStatus::Ready {
        return Err(Failure::Refused(complaint(&mut order).await));
    }
    drop(posted);
    let key = order.finalize().await?;
    let chain = order.poll_certificate(&patience).await?;
    Ok(key + &chain)
}

/// What the authority says about failed proofs.
async fn complaint(order: &mut Order) -> Option<String> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(authorization)) = authorizations.next().await {
        for challenge in &authorization.challenges {
            if let Some(detail) = challenge.error.as_ref().and_then(|error| error.detail.clone()) {
                return Some(detail);
            }
        }
    }
    None
}
