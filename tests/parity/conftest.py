"""What tests of the agent under the names of other products share with the agent's own."""

from agent_kit import answers, serve, target_check, up

__all__ = ["answers", "serve", "target_check", "up"]
