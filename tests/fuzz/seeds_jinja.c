/* Templates that have one of everything between them. */
#include <string.h>
#include "fuzz.h"

void fac_seeds(fac_seed_taker *take, void *self) {
    static const char *const all[] = {
        "\1{{ bos_token }}{% for m in messages if m.role != 'x' %}{% if loop.first and m['role'] "
        "== "
        "'system' %}{{- m.content | trim + '\\n' -}}{% elif m.role == 'user' %}<{{ m.content }}>"
        "{% else %}{{ m.content.split('</think>')[-1].lstrip('\\n') ~ eos_token }}{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ 'a' }}{% endif %}",
        "\2{%- set ns = namespace(n=0, s='') %}{% for i in range(9) %}{% if i == 2 %}{% continue %}"
        "{% elif i > 5 %}{% break %}{% endif %}{% set ns.n = ns.n + i * 2 // 3 %}{% endfor %}"
        "{{ ns.n }}{# c #}{% raw %}{{ }}{% endraw %}{% generation %}g{% endgeneration %}",
        "\3{% macro f(a, b='d', c=none) -%}{{ a ~ b }}{%- endmacro %}{{ f(1, c=[2, 'x']) }}"
        "{% set t %}{{ f('q') | upper }}{% endset %}{{ t[1:-1] + t[::-1] }}"
        "{{ {'a': [1, 2.5e3, none, true], 'b': {}} | tojson(indent=2) }}",
        "\4{{ messages | map(attribute='role') | join(', ') }}{{ messages | selectattr('role', "
        "'equalto', 'user') | list | length }}{{ [3, 1] | sort | first }}{{ messages[0] }}"
        "{{ 'a' if x is defined and x is not none else 'b' }}{{ 1 in [1] or 'x' not in {} }}"
        "{{ {'b': 1} | dictsort }}{{ messages[1:] | tojson }}{{ 'a\\nb' | indent(2, true) }}",
        "\5{% if messages[0].role == 'system' %}{{ raise_exception('no ' ~ 1) }}{% endif %}"
        "{{ strftime_now('%Y') | length }}{{ ' A b '.strip().title().replace('b', 'c') }}"
        "{{ -7 % 3 ** 2 / 4 }}{% filter lower %}X{% endfilter %}{{ messages[-1].get('k', 'd') }}"
        "{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% else %}n{% endfor %}",
    };
    static const char *const names[] = { "turns", "loops", "macros", "filters", "calls" };
    for (int k = 0; k < 5; k++) take(self, names[k], all[k], strlen(all[k]));
}
