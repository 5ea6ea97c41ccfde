"""Types of what people write in rules: each is one scalar, parsed by rules/file/scalars.py."""

from __future__ import annotations

from typing import NewType

Duration = NewType("Duration", int)  # ns
Bytes = NewType("Bytes", int)
Share = NewType("Share", float)  # 0 to 1
ErrorCode = NewType("ErrorCode", int)
ApiName = NewType("ApiName", str)  # its newest name
FieldPath = NewType("FieldPath", str)  # names of the wire table with dots: topics.partitions.error_code
NamePattern = NewType("NamePattern", str)
Number = NewType("Number", int)  # from 0
PrincipalPattern = NewType("PrincipalPattern", str)
TopicPattern = NewType("TopicPattern", str)
BrokerLabel = NewType("BrokerLabel", str)
Ordinal = NewType("Ordinal", int)  # from 1
Where = NewType("Where", object)  # an Expression
