#ifndef ${upper}_H
#define ${upper}_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    ${upper}_NUM_STATES = $num_states,
    ${upper}_NUM_SYMBOLS = $num_symbols,
    ${upper}_NUM_CLASSES = $num_classes,
    ${upper}_START = $start,
    ${upper}_NO_ANSWER = -1,
    ${upper}_NO_SYMBOL = -2
};

static const char *const ${name}_symbols[] = {$symbols};
static const char *const ${name}_classes[] = {$classes};

/* Row q: the state after each symbol read in state q. */
static const $state_type ${name}_table[$num_states][$num_symbols] = {
$table
};

/* The class that each state answers with, or -1. */
static const $answer_type ${name}_answers[$num_states] = {
$answers
};

/* The name of a symbol, a number below NUM_SYMBOLS. */
static inline const char *${name}_symbol_name(uint8_t symbol) { return ${name}_symbols[symbol]; }

/* The symbol that has this name, or NO_SYMBOL. */
static inline int ${name}_symbol_of(const char *name)
{
    for (int symbol = 0; symbol < ${upper}_NUM_SYMBOLS; symbol++)
        if (strcmp(${name}_symbols[symbol], name) == 0)
            return symbol;
    return ${upper}_NO_SYMBOL;
}

/* The name of a class that classify returned, or NULL. */
static inline const char *${name}_class_name(int answer) { return answer < 0 ? NULL : ${name}_classes[answer]; }

/* The state after one more symbol, which has to be below NUM_SYMBOLS. */
static inline $state_type ${name}_step($state_type state, uint8_t symbol) { return ${name}_table[state][symbol]; }

/* The class that a state answers with, or NO_ANSWER. */
static inline int ${name}_answer($state_type state) { return ${name}_answers[state]; }

/* The class of a string of symbols, or NO_ANSWER, or NO_SYMBOL if a symbol is not below NUM_SYMBOLS. */
static inline int ${name}_classify(const uint8_t *symbols, size_t count)
{
    $state_type state = ${upper}_START;
    for (size_t i = 0; i < count; i++) {
$check        state = ${name}_table[state][symbols[i]];
    }
    return ${name}_answers[state];
}

$text#ifdef ${upper}_SELF_TEST
#include <stdio.h>

int main(void)
{
    static const uint8_t strings[] = {
$strings
    };
    static const size_t lengths[] = {$lengths};
    static const int expected[] = {$expected};
    const size_t count = sizeof lengths / sizeof *lengths;
    size_t right = 0, offset = 0;
    for (size_t i = 0; i < count; offset += lengths[i++])
        right += ${name}_classify(strings + offset, lengths[i]) == expected[i];
    printf("%zu of %zu strings right\n", right, count);
    return right != count;
}
#endif

#endif
