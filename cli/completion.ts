export type Shell = 'bash' | 'zsh' | 'fish'

// Each script hands the words to `wcrm __complete` on standard input: arguments are seen by other users of the machine.
// What it answers is never evaluated. The program that was typed answers, where it can run.

const bash = `# bash completion for wcrm
_wcrm() {
  local program="\${COMP_WORDS[0]}" line how=''
  type -P -- "$program" >/dev/null 2>&1 || program=wcrm
  COMPREPLY=()
  while IFS= read -r line; do
    if [ -z "$how" ]; then how="$line"; else COMPREPLY+=("$line"); fi
  done < <(
    printf '%s\\0' "\${COMP_LINE:0:COMP_POINT}" "$2" "$COMP_TYPE" |
      command "$program" __complete bash 2>/dev/null
  )
  case "$how" in
    'words open '*) compopt -o nospace 2>/dev/null ;;
    'files '*) compopt -o default 2>/dev/null ;;
    'folders '*) compopt -o dirnames 2>/dev/null ;;
  esac
}
complete -F _wcrm wcrm
`

const zsh = `#compdef wcrm
_wcrm() {
  local program="\${(Q)words[1]}" line how='' about
  local -a given values abouts shown more
  local -i width=0 i
  (( $+commands[$program] )) || [[ $program == */* && -x $program ]] || program=wcrm
  given=("\${(@Q)words[1,CURRENT-1]}" "\${(Q)PREFIX}")
  while IFS= read -r line; do
    if [[ -z $how ]]; then how=$line; continue; fi
    about=\${line#*$'\\t'}
    [[ $about == "$line" ]] && about=''
    values+=("\${line%%$'\\t'*}")
    abouts+=("$about")
    [[ -z $about ]] || more=(-l)
    (( width = \${(m)#values[-1]} > width ? \${(m)#values[-1]} : width ))
  done < <(print -rN -- "\${given[@]}" | command $program __complete zsh 2>/dev/null)
  case $how in
    (files*|folders*)
      compset -p \${how##* }
      if [[ $how == files* ]]; then _files; else _files -/; fi
      return ;;
    ('words open '*) more+=(-S '') ;;
  esac
  (( $#values )) || return 1
  (( width > 40 )) && width=40
  for (( i = 1; i <= $#values; i++ )); do
    about=$values[i]
    [[ -n $abouts[i] && \${(m)#about} -lt $width ]] && about=\${(mr:width:)about}
    shown+=("$about\${abouts[i]:+  -- $abouts[i]}")
  done
  compadd -M 'm:{[:lower:][:upper:]}={[:upper:][:lower:]}' "\${more[@]}" -d shown -a values
}
if [[ $funcstack[1] == _wcrm ]]; then _wcrm "$@"; else compdef _wcrm wcrm; fi
`

const fish = `# fish completion for wcrm
function __wcrm_complete
    set -l token (commandline -ct)
    set -l words (commandline -opc)
    set -l program $words[1]
    command -q -- $program; or set program wcrm
    # The open quote of a word that is not finished is not part of it.
    set -l typed (string unescape -- $token 2>/dev/null; or string replace -r -- '^["\\']' '' $token)
    set -l lines (printf '%s\\0' $words "$typed" | command $program __complete fish 2>/dev/null)
    set -l how (string split ' ' -- $lines[1])
    switch "$how[1]"
        case files
            set -l before (string sub -l $how[3] -- "$typed")
            for line in (__fish_complete_path (string sub -s (math $how[3] + 1) -- "$typed"))
                printf '%s%s\\n' "$before" $line
            end
        case folders
            set -l before (string sub -l $how[3] -- "$typed")
            for line in (__fish_complete_directories (string sub -s (math $how[3] + 1) -- "$typed"))
                printf '%s%s\\n' "$before" $line
            end
        case words
            set -e lines[1]
            printf '%s\\n' $lines
    end
end
complete -c wcrm -f -a '(__wcrm_complete)'
`

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish }

/** Returns a shell's completion script: the same for every version, as long as the two understand each other. */
export const renderCompletion = (shell: Shell): string => scripts[shell]
