//! `tollgate-admin account`: the tenants and their plans.

use super::context::CommandContext;
use super::table::{plain, table};
use super::user::new_user;
use super::{password, value};
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::Subcommand;
use clock::now_ms;
use domain::budget::Budget;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::rate::Rate;
use domain::role::Role;
use domain::timestamp::iso_from_ms;
use serde_json::{Value, json};
use store::account::Account;
use store::account::refused;
use store::account::script as account;
use store::account::script::{NewAccount, PlanSet};
use store::account::usage::RealmUsage;
use store::audit::OPERATOR;
use store::keys::{AccountKeys, Realm};
use store::request_limits::Limit;
use store::user::User;

/// `account …`
#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// Create an account, with its owner if you give an e-mail
    Create {
        /// Its name
        #[arg(long, value_parser = value::name)]
        name: String,
        /// A plan of plans.file: free, builder, startup, enterprise
        #[arg(long)]
        plan: String,
        /// The owner's e-mail
        #[arg(long, value_name = "EMAIL", value_parser = value::email, requires = "owner_password_stdin")]
        owner_email: Option<String>,
        /// Read the owner's password from standard input, one line
        #[arg(long, requires = "owner_email")]
        owner_password_stdin: bool,
    },
    /// Change the plan of an account, from the next call on
    SetPlan {
        /// The account
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: String,
        /// The new plan
        #[arg(long)]
        plan: String,
    },
    /// List all accounts
    List,
    /// Show one account with its users
    Show {
        /// The account
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: String,
    },
}

impl AccountCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::Create {
                name,
                plan,
                owner_email,
                owner_password_stdin: _,
            } => create(context, &name, &plan, owner_email).await,
            Self::SetPlan { account, plan } => set_plan(context, &account, &plan).await,
            Self::List => list(context).await,
            Self::Show { account } => show(context, &account).await,
        }
    }
}

async fn create(
    context: &CommandContext,
    name: &str,
    plan: &str,
    email: Option<String>,
) -> Result<Report, CommandFailure> {
    known_plan(context, plan)?;
    let owner = match email {
        Some(email) => Some(new_user(context, email, Role::Owner, &password::read_stdin()?)?),
        None => None,
    };
    let id = IdKind::Account.mint(now_ms())?;
    let account = NewAccount {
        id: &id,
        name,
        plan,
        owner: owner.as_ref(),
    };
    account::create(&context.store, &account, OPERATOR).await?;
    let owner_id = owner.as_ref().map(|owner| owner.id.as_str());
    let mut text = format!("Account {id} ({name}) on plan {plan}.");
    if let Some(owner) = &owner {
        text = format!("{text}\nOwner {} signs in as {}.", owner.id, owner.email);
    }
    Ok(Report::new(
        text,
        json!({ "accountId": id, "ownerUserId": owner_id, "name": name, "plan": plan }),
    ))
}

async fn set_plan(context: &CommandContext, id: &str, plan: &str) -> Result<Report, CommandFailure> {
    known_plan(context, plan)?;
    let text = match account::set_plan(&context.store, id, plan, OPERATOR).await? {
        PlanSet::Done => format!("Account {id} is on plan {plan} now, from the next call on."),
        PlanSet::AlreadySo => format!("Account {id} was on plan {plan} already."),
        PlanSet::NoAccount => return Err(CommandFailure::no_account(id)),
    };
    Ok(Report::new(text, document(&context.account(id).await?)))
}

async fn list(context: &CommandContext) -> Result<Report, CommandFailure> {
    let mut accounts = Vec::new();
    for id in Account::ids(&context.store).await? {
        accounts.extend(Account::read(&context.store, &id).await?);
    }
    let row = |account: &Account| {
        let created = iso_from_ms(account.created_at_ms);
        vec![
            account.id.clone(),
            account.plan.clone(),
            created,
            account.name.clone(),
        ]
    };
    let columns = ["ACCOUNT", "PLAN", "CREATED", "NAME"];
    Ok(Report::list(("accounts", &columns), &accounts, row, document))
}

async fn show(context: &CommandContext, id: &str) -> Result<Report, CommandFailure> {
    let account = context.account(id).await?;
    let users = User::list(&context.store, &AccountKeys::new(id)).await?;
    let created = iso_from_ms(account.created_at_ms);
    let mut text = format!(
        "{id}  {}\nplan        {}\ncreated     {created}\ngeneration  {}\nversion     {}",
        plain(&account.name),
        account.plan,
        account.generation,
        account.version
    );
    for user in &users {
        text = format!(
            "{text}\nuser        {}  {}  {}",
            user.id,
            user.role.as_str(),
            user.email
        );
    }
    let users: Vec<Value> = users
        .iter()
        .map(|user| json!({ "userId": user.id, "email": user.email, "role": user.role.as_str() }))
        .collect();
    let mut document = document(&account);
    document["users"] = users.into();
    let mut rows = Vec::new();
    add_budgets(context, id, &mut document, &mut rows).await?;
    add_requests(context, id, &mut document, &mut rows).await?;
    let refused = refused::read(&context.store).await?.room.contains_key(id);
    document["refused"] = refused.into();
    if refused {
        text = format!("{text}\nrefused     new records: the account uses too much of the store");
    }
    let text = format!(
        "{text}\n\n{}",
        table(&["MODE", "LIMITED", "USED", "LIMIT"], &rows)
    );
    Ok(Report::new(text, document))
}

/// Adds an account's use of each budget of records, by mode, and its bytes in the store.
async fn add_budgets(
    context: &CommandContext,
    id: &str,
    document: &mut Value,
    rows: &mut Vec<Vec<String>>,
) -> Result<(), CommandFailure> {
    let budgets = context.store.budgets();
    for mode in Mode::ALL {
        let usage = RealmUsage::read(&context.store, &Realm::new(id, mode)).await?;
        for budget in Budget::ALL {
            let (used, limit) = (usage.count(budget), budgets.limit(budget));
            document["budgets"][mode.as_str()][budget.as_str()] = json!({ "used": used, "limit": limit });
            let name = budget.as_str().to_owned();
            rows.push(vec![mode.to_string(), name, used.to_string(), limit.to_string()]);
        }
        document["storeBytes"][mode.as_str()] = usage.bytes().into();
    }
    Ok(())
}

/// Adds how many requests of the present minute an account has made, of those that limits of the account count.
async fn add_requests(
    context: &CommandContext,
    id: &str,
    document: &mut Value,
    rows: &mut Vec<Vec<String>>,
) -> Result<(), CommandFailure> {
    let limits = &context.settings.limits;
    for (modes, name, rate, most) in [
        (
            "test",
            "test_requests_per_minute",
            Rate::Test,
            limits.test_requests_per_minute,
        ),
        (
            "both",
            "session_requests_per_minute",
            Rate::Session,
            limits.session_requests_per_minute,
        ),
    ] {
        let limit = Limit { rate, most };
        let used = limit.used(&context.store, &AccountKeys::new(id)).await?;
        let of_all = limit.of_account();
        document["requests"][name] = json!({ "used": used, "limit": of_all, "limitOfOne": most });
        let [modes, name] = [modes, name].map(str::to_owned);
        rows.push(vec![modes, name, used.to_string(), of_all.to_string()]);
    }
    Ok(())
}

fn document(account: &Account) -> Value {
    json!({
        "accountId": account.id, "name": account.name, "plan": account.plan,
        "createdAt": iso_from_ms(account.created_at_ms),
        "generation": account.generation, "version": account.version,
    })
}

/// Refuses an unknown plan, which would deny every call of the account.
fn known_plan(context: &CommandContext, plan: &str) -> Result<(), CommandFailure> {
    let plans = context.settings.plans()?;
    if plans.get(plan).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = plans.names().collect();
    Err(CommandFailure::usage(format!(
        "there is no plan `{plan}`; the plans are {}",
        names.join(", ")
    )))
}
