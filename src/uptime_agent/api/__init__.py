"""The control API of a running agent: who may ask, the agent's own routes, and where it is served.

The jobs of the scheduler are answered for by `scheduler.web`, which needs starlette. So other folders import this one
only where there is an [api].
"""

from __future__ import annotations

from .inside import About, Inside
from .serving import ApiServer
from .tokens import Token, TokenFile, TokensUnfit, made

__all__ = ["About", "ApiServer", "Inside", "Token", "TokenFile", "TokensUnfit", "made"]
