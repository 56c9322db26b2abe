/* The symbol of a byte, or NO_SYMBOL. */
static inline int ${name}_symbol_of_byte(unsigned char byte)
{
    static const int16_t symbols[256] = {
$bytes
    };
    return symbols[byte];
}

/* The class of a text of count bytes, each a symbol; or NO_ANSWER; or NO_SYMBOL if a byte is not a symbol. */
static inline int ${name}_classify_text(const char *text, size_t count)
{
    $state_type state = ${upper}_START;
    for (size_t i = 0; i < count; i++) {
        const int symbol = ${name}_symbol_of_byte((unsigned char)text[i]);
        if (symbol < 0)
            return ${upper}_NO_SYMBOL;
        state = ${name}_table[state][symbol];
    }
    return ${name}_answers[state];
}

