//! Pods as processes of their own, with real processes behind a real socket.

mod client;
mod commands;
mod files;
mod peers;
mod pod;
mod services;
