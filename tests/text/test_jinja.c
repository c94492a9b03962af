/* Chat templates: what Jinja gives, by jinja2 3.1 set up as transformers does it, for small
 * templates with one of everything; where bytes are from; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "text/jinja/jinja.h"

static const fac_message talk[] = { { "system", "S" },
                                    { "user", " Hi 'x' <b>\xc3\xa9\n" },
                                    { "assistant", "Yo" } };
static const fac_jinja_input input = {
    .messages = talk, .n = 3, .answer = true, .bos = "<s>", .eos = "</s>"
};

static const struct {
    const char *jinja, *want; /* NULL: refused */
} cases[] = {
    { "{% set s = 'a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z' %}{{ s[1] }}{{ s[-2] }}{{ s[9] }}{{ "
      "s[-9] "
      "}}|{{ s[1:3] }}|{{ s[-2:] }}|{{ s[:-4] }}|{{ s[3:1] }}|{{ s[-99:99] }}|{{ s[9:] }}|{{ s[:0] "
      "}}",
      "\xc3\xa9\xf0\x9f\x98\x80|\xc3\xa9\xe2\x82\xac|\xf0\x9f\x98\x80z|a||"
      "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z||" },
    { "a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc" },
    { "a {%- if true -%} b {%- endif -%} c", "abc" },
    { "a\n  {%+ if true +%}\n b\n  {%- endif %}\n\nc", "a\n  \n b\nc" },
    { "{# x #}\na{# y -#}  \n b\n  {#- z #} c\n", "ab c" },
    { " {{ 1 }} \n {{- 2 -}} \n 3 ", " 123 " },
    { "{% raw %}{{ a }} {% b %}{% endraw %}\nc", "{{ a }} {% b %}c" },
    { "{% for m in messages if m.role != 'user' %}{{ loop.index }}/{{ loop.length }}{{ m['role'] "
      "}}{{ loop.first }}{{ loop.last }}{{ loop.revindex0 }};{% else %}none{% endfor %}",
      "1/2systemTrueFalse1;2/2assistantFalseTrue0;" },
    { "{% for x in [] %}x{% else %}none{% endfor %}", "none" },
    { "{% for k, v in {'a': 1, 'b': [1, 2.5, none, true, 'q\"']}.items() %}{{ k }}={{ v }};{% "
      "endfor %}",
      "a=1;b=[1, 2.5, None, True, 'q\"'];" },
    { "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% elif i > 4 %}{% break %}{% else "
      "%}{{ i }}{% endif %}{% endfor %}",
      "0134" },
    { "{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set n "
      "= 9 %}{% endfor %}{{ ns.n }}{{ n }}",
      "3" },
    { "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{% for i in [1] %}{% set x = 3 %}{{ x "
      "}}{% endfor %}{{ x }}",
      "32" },
    { "{% set a, b = 1, 'z' %}{{ b ~ a ~ none ~ 1.0 }}{% set t %}  in {{ a }} {% endset %}[{{ t | "
      "trim }}]",
      "z1None1.0[in 1]" },
    { "{% macro f(a, b='d', c=none) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, c=2) "
      "}} {{ f(b=1, a=2) }} {{ f() }}",
      "1-d-None 1-d-2 2-1-None -d-None" },
    { "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
      "54321" },
    { "{{ 'a' if false }}|{{ 'a' if 0 else 'b' if [] else 'c' }}|{{ not 1 == 2 }}|{{ 1 < 2 < 3 "
      "}}|{{ 3 > 2 > 2 }}",
      "|c|True|True|False" },
    { "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 ** 2 }} {{ 2 + 3 * 4 - 1 }} "
      "{{ 1.5 * 2 }} {{ 'ab' * 2 }} {{ [1] + [2] }} {{ -2 ** 2 }} {{ 7.5 // 2 }} {{ 6 / 3 }}",
      "3 -4 2 3.5 64 13 3.0 abab [1, 2] 4 3.0 2.0" },
    { "{{ 'b' in 'abc' }}{{ 1 in [1, 2] }}{{ 'x' not in {'x': 1} }}{{ 'role' in messages[0] }}{{ "
      "'a' in nothing }}",
      "TrueTrueFalseTrueFalse" },
    { "{{ 'abcde'[1:3] }} {{ 'abcde'[-2:] }} {{ 'abcde'[::-1] }} {{ [1, 2, 3, 4][::2] }} {{ "
      "messages[1:] | length }} {{ '\xc3"
      "\xa9"
      "a'[0] }} {{ 'abc'[-1] }} {{ [1, 2][5] is defined }} {{ 'abc'[3:1] }}{{ (1, 2, 3)[:-1] }}",
      "bc de edcba [1, 3] 2 \xc3"
      "\xa9"
      " c False (1, 2)" },
    { "{{ messages[-1].content }}{{ messages[0].nothing }}{{ messages[0].get('x', 'y') }}{{ "
      "messages[0].get('role') }}",
      "Yoysystem" },
    { "{{ messages | map(attribute='role') | join(', ') }} {{ messages | selectattr('role', "
      "'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'in', ['user', "
      "'system']) | map(attribute='content') | first }}",
      "system, user, assistant 1 Yo" },
    { "{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'a'] | sort(reverse=true) }} {{ {'b': 1, 'a': 2} | "
      "dictsort }} {{ [1, 1, 2] | unique | list }} {{ [1, 2] | sum }} {{ [1, 5, 2] | max }} {{ "
      "'abc' | reverse }} {{ [1, 2] | reverse | list }} {{ [1, 2, 3] | select('odd') | list }} {{ "
      "[0, 1, ''] | reject | list }}",
      "[1, 2, 3] ['b', 'A', 'a'] [('a', 2), ('b', 1)] [1, 2] 3 5 cba [2, 1] [1, 3] [0, '']" },
    { "{{ messages[1] | tojson }} {{ {'a': [], 'b': {'c': 1.5e20, 'd': [1, {'e': "
      "'\\n\\t\\u00e9'}]}} | tojson(indent=2) }}",
      "{\"role\": \"user\", \"content\": \" Hi 'x' <b>\xc3"
      "\xa9"
      "\\n\"} {\n  \"a\": [],\n  \"b\": {\n    \"c\": 1.5e+20,\n    \"d\": [\n      1,\n      {\n  "
      "      \"e\": \"\\n\\t\xc3"
      "\xa9"
      "\"\n      }\n    ]\n  }\n}" },
    { "{{ messages }} {{ \"it's\" | list }} {{ [\"it's\", 'a\"', 'b\\n', \"\\\\\"] }} {{ (1,) }} "
      "{{ {} }} {{ [none, true, 1e100, 0.1, 1e-7, 100.0] }}",
      "[{'role': 'system', 'content': 'S'}, {'role': 'user', 'content': \" Hi 'x' <b>\xc3"
      "\xa9"
      "\\n\"}, {'role': 'assistant', 'content': 'Yo'}] ['i', 't', \"'\", 's'] [\"it's\", 'a\"', "
      "'b\\n', '\\\\'] (1,) {} [None, True, 1e+100, 0.1, 1e-07, 100.0]" },
    { "{{ nothing | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none "
      "| d(1) }} {{ nothing is defined }} {{ nothing is not none }} {{ none is none }} {{ tools is "
      "defined }} {{ nothing }} {{ nothing | length }}",
      "d  d None False True True True  0" },
    { "{{ 1 is number }}{{ true is number }}{{ 'a' is string }}{{ [] is iterable }}{{ {} is "
      "mapping }}{{ 'a' is sequence }}{{ 4 is divisibleby 2 }}{{ 3 is odd }}{{ 1 is sameas 1 }}{{ "
      "1.0 is integer }}{{ true is boolean }}{{ 1 is in [1] }}{{ none is iterable }}{{ true is "
      "true }}{{ 1 is eq 1 }}",
      "TrueTrueTrueTrueTrueTrueTrueTrueTrueFalseTrueTrueFalseTrueTrue" },
    { "{{ ' a b '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'a,b,c'.split(',') }}|{{ ' a  b '.split() "
      "}}|{{ 'a,b,c'.split(',', 1)[-1] }}|{{ 'abc'.startswith('ab') }}|{{ 'abc'.endswith(('x', "
      "'c')) }}|{{ 'abab'.replace('a', 'x', 1) }}|{{ 'aBc dE'.title() }}|{{ 'aBc dE'.capitalize() "
      "}}|{{ 'aB'.upper() }}|{{ 'abc'.find('c') }}|{{ 'a'.find('z') }}|{{ 'aaa'.count('a') }}|{{ "
      "'-'.join(['a', 'b']) }}|{{ 'a\\nb\\r\\nc\\n'.splitlines() }}|{{ 'ab'.replace('', '-') }}|{{ "
      "'\\n x'.lstrip('\\n') }}|{{ 'pre-x'.removeprefix('pre-') }}",
      "a b|a|['a', 'b', 'c']|['a', 'b']|b,c|True|True|xbab|Abc De|Abc de|AB|2|-1|3|a-b|['a', 'b', "
      "'c']|-a-b-| x|x" },
    { "{{ 'a' 'b' ~ \"c\\x41\\u00e9\\t\" }}{{ '\\q' }}{{ 'a\\\nb' }}", "abcA\xc3"
                                                                       "\xa9"
                                                                       "\t\\qab" },
    { "{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'x' | upper | lower | "
      "capitalize }}|{{ 'Hello World' | replace('o', '0') }}|{{ '42' | int + 1 }}|{{ 'z' | int(7) "
      "}}|{{ '1.5' | float }}|{{ 3.7 | int }}|{{ -3 | abs }}|{{ 'abc' | first }}|{{ 'abc' | last "
      "}}|{{ 3 | string + 'x' }}",
      "a\n    b\n\n    c|  a\n  b|X|Hell0 W0rld|43|7|1.5|3|3|a|c|3x" },
    { "{% filter upper %}a{{ 'b' }}{% endfilter %}{% generation %}g{% endgeneration %}", "ABg" },
    { "{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a': {'b': 1}}.a.b }}{{ [[1, 2], [3]][0][1] }}{{ {1: "
      "'x'}[1] }}",
      "112x" },
    { "{{ 'a' and 'b' }}{{ '' or 'c' }}{{ none and 1 }}{{ 0 or [] }}{{ not none }}",
      "bcNone[]True" },
    { "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else 'start' }}>{{ "
      "m.role }}>{{ loop.nextitem.role if not loop.last else 'end' }} {% endfor %}",
      "start>system>user system>user>assistant user>assistant>end " },
    { "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index0 }}{% endfor %}{{ loop.index }}{% "
      "endfor %}",
      "011012" },
    { "{% if not tools is defined %}a{% elif tools is none %}b{% else %}c{% endif %}", "b" },
    { "{% for c in 'a\xc3"
      "\xa9"
      "' %}[{{ c }}]{% endfor %}{% for k in {'x': 1} %}{{ k }}{% endfor %}{% for i in range(3, 0, "
      "-1) %}{{ i }}{% endfor %}",
      "[a][\xc3"
      "\xa9"
      "]x321" },
    { "{{ \"hi 'x' a-B (c\" | title }}{{ \"hi 'x'\".title() }}", "Hi 'x' A-B (CHi 'X'" },
    { "{{ ['b', 'a', 'C'] | min }}{{ ['b', 'a', 'C'] | max }}{{ ['b', 'C'] | min(true) }}", "aCC" },
    { "{{ 'A\xc3\x89\xce\xa9' | lower }}{{ '\xc3\xa9\xcf\x89' | upper }}",
      "a\xc3\xa9\xcf\x89\xc3\x89\xce\xa9" },
    { "{{ none | map('upper') | list }}{{ tools | selectattr('x') | list }}", "[][]" },
    { "{{ 2 * 'ab' }}{{ [nothing] }}{{ 10 | safe | length }}{{ true is odd }}{{ 5[1:] }}",
      "abab[Undefined]2True" },
    { "{{ undefined_thing.x }}", NULL },
    { "{{ 'a' + 1 }}", NULL },
    { "{{ raise_exception('no') }}", NULL },
    { "{{ 1 / 0 }}", NULL },
    { "{% for x in 5 %}{% endfor %}", NULL },
    { "{{ 'a' + nothing }}", NULL },
    { "{% if a %}", NULL },
    { "{{ a b }}", NULL },
    { "{% endfor %}", NULL },
    { "{{ 'a }}", NULL },
    { "{{ [1, 2 }}", NULL },
    { "{{ nofilter | xyz }}", NULL },
    { "{{ nofunction() }}", NULL },
    { "{{ messages.append(1) }}", NULL },
};

static fac_status render(const char *jinja, char to[4096], fac_error *err) {
    fac_arena arena = { 0 };
    fac_jinja_result r;
    const fac_status status = fac_jinja_render(&arena, jinja, &input, &r, err);
    *to = 0;
    if (!status && r.n < 4096) {
        memcpy(to, r.s, r.n);
        to[r.n] = 0;
    }
    fac_arena_free(&arena);
    return status;
}

static void as_jinja2(void **state) {
    (void)state;
    char have[4096];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_error err = { 0 };
        const fac_status status = render(cases[k].jinja, have, &err);
        if (!status != !!cases[k].want)
            fail_msg("%s\n  gives %s\n  expected %s", cases[k].jinja, status ? err.text : have,
                     cases[k].want ? cases[k].want : "to be refused");
        if (cases[k].want && strcmp(have, cases[k].want))
            fail_msg("%s\n  gives    %s\n  expected %s", cases[k].jinja, have, cases[k].want);
    }
}

/* Through every way that a text goes, its bytes stay those of a message. */
static void bytes_know_where_they_are_from(void **state) {
    (void)state;
    static const char *const of_user[] = {
        "{{ messages[1].content | trim }}",
        "{{ messages[1].content.strip()[3:6] ~ messages[1].content.split(' ')[-1].upper() }}",
        "{% for c in messages[1].content %}{{ c | upper }}{% endfor %}",
        "{% set x %}{{ messages[1].content }}{% endset %}{{ x | replace('H', '') | reverse }}",
        "{% macro f(x) %}{{ x.title() }}{% endmacro %}{{ f(messages[1]['content']) }}",
        "{{ messages[1:2] | map(attribute='content') | join(' ') }}"
    };
    for (size_t k = 0; k < sizeof of_user / sizeof *of_user; k++) {
        fac_arena arena = { 0 };
        fac_jinja_result r;
        assert_int_equal(fac_jinja_render(&arena, of_user[k], &input, &r, NULL), FAC_OK);
        assert_true(r.n > 3);
        for (size_t i = 0; i < r.n; i++)
            if (r.from[i] != FAC_JINJA_MESSAGE) fail_msg("%s: byte %zu of %s", of_user[k], i, r.s);
        assert_false(r.system);
        fac_arena_free(&arena);
    }
    fac_arena arena = { 0 };
    fac_jinja_result r;
    static const char mixed[] = "<{{ messages[0].content }}>{{ messages[2] | tojson }}";
    assert_int_equal(fac_jinja_render(&arena, mixed, &input, &r, NULL), FAC_OK);
    assert_true(r.system);
    const char *yo = memmem(r.s, r.n, "Yo", 2);
    for (size_t i = 0; i < r.n; i++) {
        const bool of_message = i == 1 || (r.s + i >= yo && r.s + i < yo + 2);
        assert_int_equal(!!r.from[i], of_message);
    }
    fac_arena_free(&arena);
}

/* A template is part of a file: it can neither take all memory nor all time. */
static void ends_in_time(void **state) {
    (void)state;
    static const char *const endless[] = {
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99) %}"
        "{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{{ 'x' * 999999999999 }}",
        "{{ range(99999999) }}",
        "{% set ns = namespace(a=[], b=[]) %}{% for i in range(200) %}"
        "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}"
        "{{ ns.a == ns.b }}",
        "{% set s = 'x' * 999999 %}{% set t = s ~ '' %}"
        "{% for i in range(99999) %}{% if s == t %}{% endif %}{% endfor %}",
        "{% set s = 'x' * 999999 %}{% for i in range(99999) %}{% if s is lt s or 'y' in s "
        "or 'y' in s.split() %}{% endif %}{% endfor %}",
        "{% set s = 'x' * 999999 %}{% for i in range(99999) %}{{ s | length }}{% endfor %}",
        "{% set s = ' ' * 999999 %}{% for i in range(99999) %}{{ s | trim }}{% endfor %}",
        "{% set s = '1' * 999999 %}{% for i in range(99999) %}{% if s.isdigit() or s.find('x') > 0 "
        "or s.startswith(s) %}{% endif %}{% endfor %}",
        "{% set s = 'x' * 999999 %}{% for i in range(99999) %}{% if s.splitlines() %}{% endif %}{% "
        "endfor %}"
    };
    char have[4096];
    for (size_t k = 0; k < sizeof endless / sizeof *endless; k++) {
        fac_error err = { 0 };
        if (render(endless[k], have, &err) != FAC_E_UNSUPPORTED)
            fail_msg("%s: %s", endless[k], err.text);
    }
    char deep[40000];
    memset(deep, '(', sizeof deep);
    memcpy(deep, "{{", 2);
    deep[sizeof deep - 1] = 0;
    assert_int_equal(render(deep, have, NULL), FAC_E_FORMAT);
    for (size_t k = 0; k + 3 < sizeof deep; k += 2) memcpy(deep + k, k ? "+1" : "{{", 2);
    memcpy(deep + sizeof deep - 4, "}}\0", 4);
    assert_int_equal(render(deep, have, NULL), FAC_E_UNSUPPORTED);
}

/* n times `what` between a head and a tail. */
static char *repeat(const char *head, const char *what, size_t n, const char *tail) {
    const size_t step = strlen(what);
    char *s = calloc(strlen(head) + n * step + strlen(tail) + 1, 1);
    assert_non_null(s);
    char *to = stpcpy(s, head);
    for (size_t k = 0; k < n; k++, to += step) memcpy(to, what, step);
    strcpy(to, tail);
    return s;
}

/* What stands many times in a row takes neither the stack nor memory by its square. */
static void long_rows(void **state) {
    (void)state;
    static const struct {
        const char *head, *what, *tail;
        fac_status status;
    } rows[] = { { "{% filter trim", "|trim", "%}{% endfilter %}", FAC_E_UNSUPPORTED },
                 { "{% set x | trim", "|trim", "%}{% endset %}", FAC_E_UNSUPPORTED },
                 { "{{ x", "|trim", "}}", FAC_E_UNSUPPORTED },
                 { "{{ x", ".y", "}}", FAC_E_UNSUPPORTED },
                 { "{{", "not ", "x }}", FAC_E_FORMAT },
                 { "{{ [", "1,", "] | length }}", FAC_OK },
                 { "{% if a %}", "{% elif a %}", "{% endif %}", FAC_OK },
                 { "{% set s = '", "abcdefgh", "' %}{{ s[1:][:-1][0] ~ s[-1] }}", FAC_OK },
                 { "{{ (", "'abcdefgh'", ") | length }}", FAC_OK } };
    char have[4096];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char *jinja = repeat(rows[k].head, rows[k].what, 200000, rows[k].tail);
        fac_error err = { 0 };
        if (render(jinja, have, &err) != rows[k].status)
            fail_msg("many of %s: %s", rows[k].what, err.text);
        free(jinja);
    }
    assert_string_equal(have, "1600000");
}

/* Errors say where, and who says no. */
static void errors_say_where(void **state) {
    (void)state;
    static const struct {
        const char *jinja, *text;
        fac_status status;
    } wrong[] = { { "a\n{{ x |\n}}", "line 3: expected a name", FAC_E_FORMAT },
                  { "{{ x | xyz }}", "the filter xyz is not known here", FAC_E_UNSUPPORTED },
                  { "\n{{ x is xyz }}", "line 2: the test xyz", FAC_E_UNSUPPORTED },
                  { "{% import 'x' %}", "import", FAC_E_FORMAT },
                  { "{{ raise_exception('Only ' ~ 1) }}", "refuses the conversation: Only 1",
                    FAC_E_ARGUMENT },
                  { "{{ 9223372036854775808 }}", "line 1: a number that is too", FAC_E_FORMAT },
                  { "{{ x.y }}", "x is undefined", FAC_E_ARGUMENT } };
    char have[4096];
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        fac_error err = { 0 };
        assert_int_equal(render(wrong[k].jinja, have, &err), wrong[k].status);
        if (!strstr(err.text, wrong[k].text)) fail_msg("%s: %s", wrong[k].jinja, err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_jinja2),
                                        cmocka_unit_test(bytes_know_where_they_are_from),
                                        cmocka_unit_test(ends_in_time), cmocka_unit_test(long_rows),
                                        cmocka_unit_test(errors_say_where) };
    return cmocka_run_group_tests_name("jinja", tests, NULL, NULL);
}
