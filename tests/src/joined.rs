//! Agents that join a controller over TLS as keepers do, without a keeper.

use periapt_client::{Client, ClientCertificate, Identity, Options, Trust};
use periapt_host_api::{
    AgentName,
    agent::{Admission, CertificateRequest, Register},
    command::ControllerCommand,
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_transport::AgentKey;

/// The time for which a join token can be used.
const JOINS_WITHIN_SECONDS: u64 = 60;

/// An agent that has joined with a key of its own, and has registered.
pub struct JoinedAgent {
    /// The name.
    pub name: AgentName,
    /// The private key.
    pub key: AgentKey,
    /// The certificate that the controller has issued.
    pub certificate: ClientCertificate,
    /// A client that shows the certificate, with one connection.
    pub client: Client,
}

impl JoinedAgent {
    /// Admits an agent as the operator, and lets it join at a URL.
    ///
    /// # Errors
    /// The controller cannot be reached, or refuses the agent.
    pub async fn new(
        operator: &Client,
        (url, trust): (&str, &Trust),
        name: AgentName,
    ) -> anyhow::Result<Self> {
        let mut secret = [7; TOKEN_BYTES];
        secret.iter_mut().zip(name.as_str().bytes()).for_each(|(place, byte)| *place = byte);
        let (key, token) = (AgentKey::generate()?, Token::new(TokenKind::Join, secret));
        let (agent, valid_for) = (name.clone(), JOINS_WITHIN_SECONDS);
        let admission = Admission { agent, token: token.digest(), valid_for, again: true };
        operator.controller_command(ControllerCommand::AdmitAgent(admission)).await?;
        let asked = CertificateRequest { request: key.request()?, token: Some(token) };
        let options = Options::new(url, Identity::Local).with_trust(trust.clone());
        let issued = Client::new(options.clone())?.agent_certificate(&name, &asked).await?;
        let certificate = ClientCertificate::default();
        certificate.set(&issued.certificate, &key)?;
        let client = Client::new(options.with_certificate(certificate.clone()))?;
        client.register(&name, &Self::host(&name)).await?;
        Ok(Self { name, key, certificate, client })
    }

    /// Returns what an agent tells of its host.
    fn host(name: &AgentName) -> Register {
        Register {
            addresses: vec!["192.0.2.7".to_owned()],
            interfaces: Vec::new(),
            boot_id: "1".to_owned(),
            hostname: name.to_string(),
            availability_zone: String::new(),
            cores: 1,
            tags: Default::default(),
            version: String::new(),
            engine: String::new(),
            storage_limit: None,
            program: None,
            peer_port: None,
            firewall_problem: None,
            container_problem: None,
        }
    }
}
