import fc from 'fast-check'
import type { TemplateDraft } from '../../catalog/templates/schemas.ts'
import {
  type Json,
  type JsonObject,
  oneOf,
  parseable,
  parseDraft,
  validDraftJson,
} from './draft-arbitraries.ts'
import {
  addedFields,
  lookalikes,
  maxCharacters,
  plainReplacements,
  replacementsByField,
  snippets,
} from './draft-values.ts'

/** A value in a draft, with the object or list that holds it. `path` omits list indexes. */
type DraftNode = { holder: JsonObject | Json[]; key: string | number; value: Json; path: string }

const listNodes = (holder: JsonObject | Json[], above = ''): DraftNode[] =>
  Object.entries(holder).flatMap(([key, value]): DraftNode[] => {
    const path = Array.isArray(holder) ? above : `${above}${above && '.'}${key}`
    return [
      { holder, key, value, path },
      ...(value !== null && typeof value === 'object' ? listNodes(value, path) : []),
    ]
  })

const setNode = ({ holder, key }: DraftNode, value: Json): void => {
  ;(holder as Record<string | number, Json>)[key] = value
}

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length]

type Edit = (draft: JsonObject) => void

/** Edits one node that matches. Each path is equally likely, however many nodes it has. */
const editNode =
  (matches: (value: Json) => boolean, edit: (node: DraftNode) => void, n: number): Edit =>
  (draft) => {
    const candidates = listNodes(draft).filter((node) => matches(node.value))
    const path = pick([...new Set(candidates.map((node) => node.path))], n)
    const node = pick(
      candidates.filter((candidate) => candidate.path === path),
      Math.floor(n / 31),
    )
    if (node) edit(node)
  }

const isText = (value: Json): value is string => typeof value === 'string'

const isObject = (value: Json): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/**
 * Returns the text cut to a length, or padded to it at code point `index`. A negative index counts from the
 * end.
 */
const resizeText = (text: string, filler: string, length: number, index: number): string => {
  const points = [...text]
  const missing = length - points.length
  return missing <= 0
    ? points.slice(0, length).join('')
    : [...points.slice(0, index), filler.repeat(missing), ...points.slice(index)].join('')
}

const insertSnippet = (text: string, snippet: string, position: number): string => {
  const points = [...text]
  const index = position % 3 === 0 ? 0 : position % 3 === 1 ? points.length : position % (points.length + 1)
  return [...points.slice(0, index), snippet, ...points.slice(index)].join('')
}

/** Returns the list with another length. Repeated buttons get labels of their own. */
const resizeList = (list: Json[], size: number): Json[] =>
  list.length === 0
    ? []
    : Array.from({ length: size }, (_, n) => {
        const item = structuredClone(list[n % list.length]!)
        return n >= list.length && isObject(item) && isText(item['text'] ?? null)
          ? { ...item, text: [...`${n} ${item['text'] as string}`].slice(0, 25).join('').trim() }
          : item
      })

const editList = (list: Json[], operation: string, n: number, m: number): Json[] => {
  const [from, to] = [n % (list.length + 1), m % (list.length + 1)]
  switch (operation) {
    case 'drop':
      return list.toSpliced(from, 1)
    case 'duplicate':
      return list.toSpliced(to, 0, ...list.slice(from, from + 1).map((v) => structuredClone(v)))
    case 'rotate':
      return [...list.slice(from), ...list.slice(0, from)]
    default:
      return resizeList(list, [0, 1, 2, 3, list.length + 1, 9, 10, 11][m % 8]!)
  }
}

/** Copies the label of one button, with a small change, to the next one. */
const copyLabel =
  (n: number, m: number, change: (label: string) => string): Edit =>
  (draft) => {
    const lists = listNodes(draft)
      .filter((node) => node.key === 'buttons' && Array.isArray(node.value))
      .map((node) => node.value as JsonObject[])
    const list = pick(lists, n) ?? []
    const [first, second] = [pick(list, m), pick(list, m + 1)]
    if (first && second && isText(first['text'] ?? null)) second['text'] = change(first['text'] as string)
  }

const randomIndex = fc.nat({ max: 999 })

const randomEdit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(randomIndex, snippets, randomIndex)
      .map(([n, snippet, position]) =>
        editNode(isText, (node) => setNode(node, insertSnippet(node.value as string, snippet, position)), n),
      ),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(randomIndex, randomIndex, fc.nat({ max: 3 }))
      .map(([n, choice, usesField]) =>
        editNode(
          isText,
          (node) =>
            setNode(
              node,
              pick((usesField > 0 && replacementsByField[node.key]) || plainReplacements, choice)!,
            ),
          n,
        ),
      ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(randomIndex, oneOf('a', 'é', '界', '𝒳', '🎉', '1', ' '), fc.nat({ max: 1 }), oneOf(1, -1, 9999))
      .map(([n, filler, excess, index]) =>
        editNode(
          isText,
          (node) => {
            setNode(
              node,
              resizeText(node.value as string, filler, (maxCharacters[node.path] ?? 30) + excess, index),
            )
          },
          n,
        ),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(randomIndex, lookalikes).map(([n, lookalike]) =>
      editNode(
        (value) => isText(value) && value.includes('{{1}}'),
        (node) =>
          setNode(
            node,
            (node.value as string).replace('{{1}}', () => lookalike),
          ),
        n,
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: randomIndex.map((n) =>
      editNode(
        () => true,
        ({ holder, key }) => {
          if (!Array.isArray(holder)) delete holder[key]
        },
        n,
      ),
    ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(randomIndex, oneOf('drop', 'duplicate', 'resize', 'resize', 'rotate'), randomIndex, randomIndex)
      .map(([n, operation, from, to]) =>
        editNode(
          Array.isArray,
          (node) => setNode(node, editList(node.value as Json[], operation, from, to)),
          n,
        ),
      ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(randomIndex, addedFields)
      .map(([n, fields]) =>
        editNode(isObject, (node) => Object.assign(node.value as JsonObject, structuredClone(fields)), n),
      ),
  },
  {
    weight: 4,
    arbitrary: addedFields.map((fields): Edit => (draft) => {
      Object.assign(draft, structuredClone(fields))
    }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        randomIndex,
        randomIndex,
        oneOf(
          (text: string) => text,
          (text: string) => ` ${text}`,
          (text: string) => `${text}\u00A0`,
          (text: string) => text.toUpperCase(),
        ),
      )
      .map(([n, m, change]) => copyLabel(n, m, change)),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(randomIndex, oneOf(-1, 0, 1, 90, 91)).map(([n, value]) =>
      editNode(
        (v) => typeof v === 'number',
        (node) => setNode(node, value),
        n,
      ),
    ),
  },
)

const applyEdits = (draft: JsonObject, edits: readonly Edit[]): Json => {
  const copy = structuredClone(draft)
  // Edits whose result the schema does not accept are skipped, so that the others have an effect.
  return edits.reduce((current, edit) => {
    const next = structuredClone(current)
    edit(next)
    return parseDraft(next).length > 0 ? next : current
  }, copy)
}

const editCount = fc.oneof(
  fc.constant(0),
  { weight: 2, arbitrary: fc.constant(1) },
  { weight: 2, arbitrary: fc.constant(2) },
  { weight: 2, arbitrary: fc.constant(3) },
)

/** Valid drafts after up to three edits, each of which may break a rule, fix one, or neither. */
export const editedDrafts: fc.Arbitrary<TemplateDraft> = parseable(
  fc
    .tuple(
      validDraftJson,
      editCount.chain((count) => fc.array(randomEdit, { minLength: count, maxLength: count })),
    )
    .map(([draft, edits]) => applyEdits(draft, edits)),
)
