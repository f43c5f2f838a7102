/* The completion scripts of the shells. They know nothing of the verbs: they ask `assay completion
 * words`, so that they never differ from the program that they complete. */
#include "cli/commands/completion.h"

static const char bash[] =
    "# bash completion of assay; made by `assay completion bash`\n"
    "_assay()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words current keep\n"
    "    read -ra words <<< \"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
    "    current=${words[${#words[@]}-1]}\n"
    "    keep=${current%\"${current##*[=:]}\"} # readline replaces only what is behind = and :\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        line=${line%%$'\\t'*}\n"
    "        COMPREPLY+=(\"${line#\"$keep\"}\")\n"
    "    done < <(\"${words[0]}\" completion words -- \"${words[@]:1}\" 2> /dev/null)\n"
    "    [[ ${COMPREPLY[0]-} == */ ]] && compopt -o nospace 2> /dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -o bashdefault -o default -F _assay assay\n";

static const char zsh[] =
    "#compdef assay\n"
    "# zsh completion of assay; made by `assay completion zsh`\n"
    "_assay()\n"
    "{\n"
    "    local line name\n"
    "    local -a described slashed\n"
    "    while IFS= read -r line; do\n"
    "        name=${line%%$'\\t'*}\n"
    "        if [[ $name == */ ]]; then\n"
    "            slashed+=(\"$name\")\n"
    "        elif [[ $line == *$'\\t'* ]]; then\n"
    "            described+=(\"${name//:/\\\\:}:${line#*$'\\t'}\")\n"
    "        else\n"
    "            described+=(\"${name//:/\\\\:}\")\n"
    "        fi\n"
    "    done < <(\"${words[1]}\" completion words -- \"${(@Q)words[2,CURRENT]}\" 2> /dev/null)\n"
    "    if (( ${#described} + ${#slashed} == 0 )); then\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    (( ${#slashed} )) && compadd -S '' -- \"${slashed[@]}\"\n"
    "    (( ${#described} )) && _describe -V assay described\n"
    "}\n"
    "if [[ ${funcstack[1]-} == _assay ]]; then\n"
    "    _assay \"$@\"\n"
    "else\n"
    "    compdef _assay assay\n"
    "fi\n";

static const char fish[] =
    "# fish completion of assay; made by `assay completion fish`\n"
    "function __assay_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l found ($words[1] completion words -- $words[2..-1] \"$current\" 2> /dev/null)\n"
    "    if test (count $found) -gt 0\n"
    "        printf '%s\\n' $found\n"
    "    else\n"
    "        __fish_complete_path \"$current\"\n"
    "    end\n"
    "end\n"
    "complete -c assay -f -a '(__assay_words)'\n";

const char *completion_script(const char *shell)
{
    if (as_streq(shell, "bash"))
        return bash;
    if (as_streq(shell, "zsh"))
        return zsh;
    return as_streq(shell, "fish") ? fish : NULL;
}
