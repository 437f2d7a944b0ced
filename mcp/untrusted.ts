import { compileMarked, type MarkedTree } from '../catalog/marked.ts'
import { getOutputSchema, type Operation } from '../catalog/operation.ts'
import { HIDDEN } from '../catalog/text.ts'
import { escapePointer } from '../catalog/values.ts'

/** What hides in JSON text, in which control characters are escapes. */
const HIDDEN_JSON = new RegExp(`\\\\(?:u[\\da-f]{4}|.)|${HIDDEN}|[\\x7f-\\x9f]`, 'gv')
const CONTROL_ESCAPE = /^\\(?:u00[01]|[bfr])/

/**
 * Finds out fast that there is nothing to remove: true for every text that has hidden characters, and for some
 * that have none. The last range are halves of pairs beyond U+FFFF.
 */
const MAY_HIDE = new RegExp(
  [
    '[\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f',
    '\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb',
    '\\ud80d\\ud82f\\ud834\\udb40-\\udb43]|\\\\[bfru]',
  ].join(''),
)

/**
 * Removes from JSON text what hides in its strings: invisible, direction, tag and control characters. Line
 * breaks, tabs and what emoji and joined scripts need stay.
 */
export const removeHidden = (json: string): string =>
  MAY_HIDE.test(json)
    ? json.replace(HIDDEN_JSON, (found: string, visible: string | undefined) =>
        visible !== undefined || (found.startsWith('\\') && !CONTROL_ESCAPE.test(found)) ? found : '',
      )
    : json

/** Yields the JSON Pointers of what is marked, with `*` for the items of a list. */
const listPointers = function* (tree: MarkedTree<'untrusted'> | undefined, pointer = ''): Generator<string> {
  if (!tree) return
  if (tree.mark) return yield pointer
  for (const [name, member] of tree.members) yield* listPointers(member, `${pointer}/${escapePointer(name)}`)
  yield* listPointers(tree.items, `${pointer}/*`)
  yield* listPointers(tree.others, `${pointer}/*`)
}

/** Returns the JSON Pointers of the fields of an answer that outsiders wrote, with `*` for items. */
export const listUntrusted = (op: Operation): string[] => [
  ...new Set(listPointers(compileMarked('untrusted', getOutputSchema(op)))),
]

/** Whether a JSON text has fields of all names on the way of a pointer; one without may be left out. */
const mayHave = (json: string, pointer: string): boolean =>
  pointer.split('/').every((name) => name === '' || name === '*' || json.includes(`"${name}":`))

/**
 * Returns an answer, the JSON text of an object, with the list of the fields that outsiders wrote, without those
 * that it cannot have.
 */
export const nameUntrusted = (json: string, pointers: readonly string[]): string => {
  const present = pointers.filter((pointer) => mayHave(json, pointer))
  return present.length === 0
    ? json
    : `${json.slice(0, -1)}${json === '{}' ? '' : ','}"untrusted_fields":${JSON.stringify(present)}}`
}
