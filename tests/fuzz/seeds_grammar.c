/* A grammar and a schema with one of everything. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const char gbnf[] = "\1root ::= \"a\\n\\x41\" (x | [^a-z]){1,3} . # end\nx ::= [0-9]+ "
                               "y? z*\ny ::= \"q\" |\nz ::= [\\u0400-\\u0500]\n";
    static const char schema[] =
        "\2{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/"
        "$defs/b\"},\"minItems\":1},"
        "\"c\":{\"anyOf\":[{\"const\":1},{\"enum\":[\"x\",null]}]}},\"required\":[\"a\"],"
        "\"$defs\":{\"b\":{\"type\":[\"string\",\"null\"],\"maxLength\":3}}}";
    take(self, "gbnf", gbnf, sizeof gbnf - 1);
    take(self, "schema", schema, sizeof schema - 1);
}
