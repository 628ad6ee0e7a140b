//! The site's configuration file.

use crate::{Database, Settings};
use periapt_sdk::{Context, Relation, Result, Unit};
use sha2::{Digest, Sha256};
use std::fmt::Write;

pub(crate) struct Site {
    pub(crate) settings: Settings,
    pub(crate) database: Database,
    pub(crate) salt: String,
}

impl Site {
    /// Renders `wp-config.php`, which is the same in every unit of the application.
    pub(crate) fn render(&self) -> String {
        let Self { settings, database, salt } = self;
        let constants = [
            ("DB_NAME", quote(&database.name)),
            ("DB_USER", quote(&database.user)),
            ("DB_PASSWORD", quote(&database.password)),
            ("DB_HOST", quote(&format!("{}:{}", database.host, database.port))),
            ("DB_CHARSET", quote(&database.character_set)),
            ("AUTH_SALT", quote(salt)),
            ("BLOG_TITLE", quote(&settings.title)),
            ("WP_DEBUG", settings.debug.to_string()),
        ];
        let mut file = "<?php\n".to_owned();
        for (name, value) in constants {
            file += &format!("define('{name}', {value});\n");
        }
        file + "require_once __DIR__ . '/wp-settings.php';\n"
    }

    /// Returns the SHA-256 of the rendered file, in hex: it shows if two units serve the same, without revealing
    /// secrets.
    pub(crate) fn digest(&self) -> String {
        hex(&Sha256::digest(self.render()))
    }
}

/// Returns the salt that signs the visitors' cookies, the same in every unit. The leader generates it once.
pub(crate) fn salt(unit: &Unit, peers: &Relation) -> Result<Option<String>> {
    let made = peers.app_bag().get("auth-salt")?;
    if made.is_some() || !unit.is_leader()? {
        return Ok(made);
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("no random bytes for the salt")?;
    let salt = hex(&bytes);
    peers.app_bag().set("auth-salt", &salt)?;
    Ok(Some(salt))
}

/// Returns a PHP string in single quotes, in which only `\` and `'` are special.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_types_cannot_leave_its_quotes() {
        assert_eq!(quote(r"it's \'); evil('"), r"'it\'s \\\'); evil(\''");
    }

    #[test]
    fn the_file_holds_the_account_and_the_settings() {
        let site = Site {
            settings: Settings { title: "Cats".to_owned(), port: 80, debug: true },
            database: Database {
                host: "10.0.0.2".to_owned(),
                port: 3306,
                name: "wordpress_1".to_owned(),
                user: "relation-1".to_owned(),
                password: "secret".to_owned(),
                character_set: "utf8mb4".to_owned(),
            },
            salt: "00ff".to_owned(),
        };
        let file = site.render();
        for line in [
            "define('DB_HOST', '10.0.0.2:3306');",
            "define('DB_PASSWORD', 'secret');",
            "define('BLOG_TITLE', 'Cats');",
            "define('WP_DEBUG', true);",
        ] {
            assert!(file.lines().any(|written| written == line), "no {line} in\n{file}");
        }
        assert_eq!(site.digest().len(), 64);
    }
}
