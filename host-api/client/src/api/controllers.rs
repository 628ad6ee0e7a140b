//! The calls of controllers to each other.

use http::Method;
use periapt_host_api::member::{MemberAdmission, MemberJoin, MemberKeys};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Client, Result};

impl Client {
    /// Passes commands on to the controller that leads, and returns their answers. Both sides know the forms.
    pub async fn forward_commands<A: DeserializeOwned>(&self, commands: &impl Serialize) -> Result<A> {
        self.call(Method::POST, "/v1/controllers/commands").json(commands)?.value().await
    }

    /// Tells the controller that leads which agents are connected to another one, and returns what it knows of all.
    pub async fn report_presence<A: DeserializeOwned>(&self, report: &impl Serialize) -> Result<A> {
        self.call(Method::POST, "/v1/controllers/presence").json(report)?.value().await
    }

    /// Admits a further controller of the log, which joins with a token.
    pub async fn admit_member(&self, admission: &MemberAdmission) -> Result<()> {
        self.call(Method::POST, "/v1/controllers/admissions").json(admission)?.value().await
    }

    /// Joins the controllers of a log, and returns their keys.
    pub async fn join_member(&self, join: &MemberJoin) -> Result<MemberKeys> {
        self.call(Method::POST, "/v1/controllers/join").json(join)?.value().await
    }
}
