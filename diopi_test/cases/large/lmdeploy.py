"""Large cases of the LMDeploy engine: vocabularies of 32,003 tokens, long caches, many rows and sequences."""

from diopi_proto.types import Dtype
from diopi_test.cases.domains import integer_values, normal
from diopi_test.cases.large.makers import grow, register_grown
from diopi_test.cases.lmdeploy.criteria import STOPS
from diopi_test.cases.template import tensor
from diopi_test.cases.tensors import literal, periodic_mask

HALF, LONG = Dtype.float16, Dtype.int64

ROWS = 70_001
"""The number of sequences, tokens or rows."""

VOCABULARY = 32_003

# Layers

register_grown(
    "diopiRootMeanSquareNormInp",
    "diopiFusedAddRootMeanSquareNormInp",
    cases=[
        grow("rows", "many-rows", inoutput=(ROWS, 3), scale=(3,)),
        grow("rows", "long-rows", HALF, inoutput=(17, 4_099), scale=(4_099,)),
    ],
)
register_grown(
    "diopiFusedSiluFfnInp",
    cases=[grow("plain", "wide", inoutput=(131, 513), weight1=(513, 1_031), weight2=(1_031, 513))],
)

HEADS = {"local_head_num": 8, "local_kv_head_num": 2}
register_grown(
    "diopiFusedContextAttentionInp",
    cases=[
        grow(
            "plain",
            "long",
            inoutput=(262, 640),
            qkv_weight=tensor(640, 960, domain=normal(0.04)),
            qkv_bias=(1, 960),
            key_cache=(2, 2, 2, 211, 80),
            **HEADS,
            **{"size_per_head": 80, "max_seq_len": 211, "rotary_embedding": 80, "max_q_len": 131, "max_kv_len": 201},
        )
    ],
)
register_grown(
    "diopiFusedDecoderAttentionInp",
    cases=[
        grow(
            "plain",
            "long",
            inoutput=(131, 512),
            qkv_weight=tensor(512, 768, domain=normal(0.04)),
            qkv_bias=(1, 768),
            key_cache=(1, 131, 2, 67, 64),
            finished=periodic_mask(131, period=4),
            total_padding_tokens=tensor(131, domain=integer_values(0, 30)),
            sequence_lengths=tensor(131, domain=integer_values(1, 150)),
            **HEADS,
            **{"layer_id": 0, "size_per_head": 64, "max_seq_len": 67, "rotary_embedding": 64, "step": 151},
        )
    ],
)

# Sampling and what goes before it

register_grown(
    "diopiSetupTopkRuntimeArgsInp",
    "diopiSetupToppRuntimeArgsInp",
    cases=[grow("each", "many", LONG, top_ks=(ROWS,), batch_size=ROWS, top_ks_size=ROWS, top_ps_size=ROWS)],
)
register_grown(
    "diopiTopKSampling",
    "diopiTopPSampling",
    cases=[grow("certain", "vocabulary", logits=(9, VOCABULARY), vocab_size_padded=VOCABULARY)],
)
register_grown(
    "diopiBatchApplyTemperaturePenaltyInp",
    cases=[
        grow(
            "padded",
            "vocabulary",
            dtype,
            logits=(5, VOCABULARY),
            bias=(VOCABULARY,),
            temperatures=(5,),
            **{"batch_size": 5, "vocab_size": VOCABULARY - 4, "vocab_size_padd": VOCABULARY},
        )
        for dtype in (None, HALF)
    ],
)
register_grown(
    "diopiBatchApplyRepetitionPenaltyInp",
    cases=[
        grow(
            "multiplicative",
            "vocabulary",
            logits=(5, VOCABULARY),
            penalties=(5,),
            output_ids=tensor(2_053, 5, domain=integer_values(0, VOCABULARY - 1)),
            input_lengths=tensor(5, domain=integer_values(1, 1_000)),
            **{"batch_size": 5, "vocab_size": VOCABULARY, "max_input_length": 1_000, "step": 2_052},
        )
    ],
)
register_grown("diopiBanBadWordsInp", cases=[grow("own", "vocabulary", logits=(3, VOCABULARY), vocab_size=VOCABULARY)])
register_grown(
    "diopiStopWordsCriterion",
    cases=[
        grow(
            "last",
            "many",
            LONG,
            output_ids=tensor(4, 10_007, domain=integer_values(1, 9)),
            stop_words=literal([STOPS[n % 8] for n in range(10_007)]),
            finished=periodic_mask(10_007, period=7),
            batch_size=10_007,
        )
    ],
)
register_grown(
    "diopiLengthCriterion",
    cases=[
        grow(
            "some",
            "many",
            LONG,
            finished=periodic_mask(ROWS, period=7),
            sequence_limit_length=tensor(ROWS, domain=integer_values(2, 9)),
            batch_size=ROWS,
        )
    ],
)

# Helpers

register_grown(
    "diopiGatherOutput",
    cases=[
        grow(
            "ragged",
            "many",
            LONG,
            output_ids=(67, 2_053),
            ids=(2_001, 67),
            context_length=tensor(67, domain=integer_values(1, 1_000)),
            **{"max_context_len": 1_000, "max_gen_step": 2_000, "max_output_len": 2_053, "batch_size": 67},
        )
    ],
)
register_grown("diopiPlusScalarInp", cases=[grow("some", "many", LONG, inoutput=(ROWS,), size=65_537)])
register_grown(
    "diopiUpdatePaddingCount",
    cases=[
        grow(
            "ragged",
            "many",
            LONG,
            total_padding_count=tensor(ROWS, domain=integer_values(0, 0)),
            input_lengths=tensor(ROWS, domain=integer_values(0, 4_097)),
            **{"max_input_length": 4_097, "batch_size": ROWS},
        )
    ],
)
register_grown("diopiTransposeAxis01", cases=[grow("plain", "wide", input=(37, 67, 131), dim0=37, dim1=67, dim2=131)])
register_grown(
    "diopiEmbeddingLookupPosEncoding",
    cases=[
        grow(
            "plain",
            "vocabulary",
            embedding_table=(VOCABULARY, 67),
            all_ids=tensor(5, 1_031, domain=integer_values(0, VOCABULARY - 1)),
            **{"batch_size": 1_031, "hidden_units": 67, "step": 3},
        )
    ],
)
register_grown(
    "diopiInputIdsEmbeddingLookupPosEncoding",
    cases=[
        grow(
            "plain",
            "vocabulary",
            embedding_table=(VOCABULARY, 67),
            input_ids=tensor(1_031, domain=integer_values(0, VOCABULARY - 1)),
            **{"input_lengths": 1_031, "hidden_units": 67},
        )
    ],
)
