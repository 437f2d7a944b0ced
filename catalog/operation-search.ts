import MiniSearch from 'minisearch'

/** What of an operation is searched. `words`: as in its declaration. */
export type SearchedTexts = {
  readonly words: string
  readonly operation: string
  readonly command: string
  readonly summary: string
  readonly description: string
  readonly fields: string
  readonly fieldDescriptions: string
}

/** How much a word counts in each field of a document. */
const boost = {
  words: 5,
  summary: 2,
  operation: 1,
  command: 1,
  description: 0.5,
  fields: 0.3,
  fieldDescriptions: 0.2,
}

/** Words that people use for what the catalog calls otherwise, wherever they would fit many operations. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  answer: ['reply'],
  campaign: ['broadcast'],
  chat: ['conversation'],
  client: ['contact'],
  colleague: ['staff'],
  customer: ['contact'],
  employee: ['staff'],
  label: ['tag'],
  lead: ['contact'],
  people: ['contact'],
  person: ['contact'],
  remove: ['delete'],
  thread: ['conversation'],
  ticket: ['conversation'],
}

/** Words that say nothing about an operation. */
const stopWords = new Set(
  (
    'a all an and any are as at be by can could do does for from get has have how i in is it me my of on one or our ' +
    'please should show that the their them there this to us want was we what when where which will with you your'
  ).split(' '),
)

/** The same for singular and plural, and for the forms of a verb, which is all that short texts need. */
const stem = (word: string): string => {
  if (word.length < 4) return word
  const bare = word.replace(/ies$/, 'y').replace(/(?:ing|ed|es|s)$/, '')
  return bare.replace(/e$/, '').replace(/(.)\1$/, '$1')
}

const synonymsOf = new Map(Object.entries(synonyms).map(([word, others]) => [stem(word), others.map(stem)]))

const splitWords = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? []

const toTerm = (word: string): string | undefined => {
  const lower = word.toLowerCase()
  return stopWords.has(lower) ? undefined : stem(lower)
}

/** Operations that fit so much less than the best one are left out. */
const MIN_SCORE = 0.3

/** Finds operations for what somebody wants to do: returns their names, best first. */
export type OperationSearch = (query: string) => string[]

/** Returns a search in operations; its index takes a few milliseconds for each hundred of them. */
export const createOperationSearch = (operations: readonly SearchedTexts[]): OperationSearch => {
  const index = new MiniSearch({
    idField: 'operation',
    fields: Object.keys(boost),
    tokenize: splitWords,
    processTerm: toTerm,
    searchOptions: {
      boost,
      processTerm: (word) => {
        const term = toTerm(word)
        return term === undefined ? undefined : [term, ...(synonymsOf.get(term) ?? [])]
      },
      prefix: (term) => term.length > 3,
      fuzzy: (term) => (term.length > 4 ? 0.2 : 0),
      weights: { prefix: 0.5, fuzzy: 0.3 },
      // Texts of some ten words: how often one has a word, and how long it is, says little.
      bm25: { k: 0.6, b: 0.3, d: 0.5 },
    },
  })
  index.addAll(operations)
  return (query) => {
    const hits = index.search(query)
    const least = (hits[0]?.score ?? 0) * MIN_SCORE
    return hits.filter(({ score }) => score >= least).map(({ id }) => id as string)
  }
}
