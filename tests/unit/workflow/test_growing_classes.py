"""Requirements for classes that many times as large, where people have several records."""

from __future__ import annotations

import pytest

from noren.models import FrequencyLDiversity, KAnonymity, PSensitiveKAnonymity
from noren.workflow.settling import larger

DIVERSE = FrequencyLDiversity(on="ill", l=3)


@pytest.mark.parametrize("asked", [[DIVERSE], [KAnonymity(k=5)], [KAnonymity(k=5), DIVERSE]])
def test_once_as_large_is_what_was_asked(asked):
    assert larger(asked, 1) == asked


@pytest.mark.parametrize(("factor", "k"), [(1.5, 8), (2, 10), (2.1, 11)])
def test_what_counts_records_asks_for_more(factor, k):
    assert larger([KAnonymity(k=5), DIVERSE], factor) == [KAnonymity(k=k), DIVERSE]
    assert larger([PSensitiveKAnonymity(on="ill", p=2, k=5)], factor) == [PSensitiveKAnonymity(on="ill", p=2, k=k)]


def test_what_counts_none_is_joined_by_a_class_size():
    assert larger([DIVERSE], 2) == [DIVERSE, KAnonymity(k=4)]
    assert larger([DIVERSE], 1.5) == [DIVERSE, KAnonymity(k=3)]
