from typing import (
    TYPE_CHECKING as TYPE_CHECKING,
)
from typing import (
    Any as Any,
)
from typing import (
    BinaryIO as BinaryIO,
)
from typing import (
    Final as Final,
)
from typing import (
    Generic as Generic,
)
from typing import (
    Literal as Literal,
)
from typing import (
    NamedTuple as NamedTuple,
)
from typing import (
    NoReturn as NoReturn,
)
from typing import (
    ParamSpec as ParamSpec,
)
from typing import (
    TypeVar as TypeVar,
)
from typing import (
    cast as cast,
)
from typing import (
    overload as overload,
)
