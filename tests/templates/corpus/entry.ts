import { TemplateDraft } from '../../../catalog/templates/schemas.ts'

/** Where the provider publishes what a draft of the corpus is about. */
export const corpusSources = {
  reference: 'Message templates, reference of components: limits, required members, and counts of buttons.',
  guidelines: 'Message templates, guidelines and common reasons of rejection.',
  authentication: 'Authentication templates: their fixed texts, buttons and expiry.',
  offer: 'Limited-time offer templates.',
  carousel: 'Media card carousel templates.',
  languages: 'Supported languages.',
  error_codes: 'Error codes: the subcodes 23880… of code 100.',
  libraries: 'Open libraries and issue threads that quote answers of the provider.',
} as const

/**
 * What the provider does with a draft: accepts it; refuses it with a code, and the subcode where one is known; or
 * accepts it and rejects it in review for this reason.
 */
export type Verdict = 'accepted' | { code: number; subcode?: number } | { rejected: string }

/**
 * How sure a verdict is. `certain`: published by the provider. `likely`: seen in answers of the provider that
 * others quote. `assumed`: neither says; this is what lint and sandbox were made to agree on.
 */
type Certainty = 'certain' | 'likely' | 'assumed'

export type CorpusEntry = {
  id: string
  draft: TemplateDraft
  verdict: Verdict
  source: keyof typeof corpusSources
  certainty: Certainty
}

export type Fields = Record<string, unknown>
/** `[id, fields of the draft, verdict, source, certainty]`; certain when it is not said. */
export type Row = readonly [
  id: string,
  fields: Fields,
  verdict: Verdict,
  source: keyof typeof corpusSources,
  certainty?: Certainty,
]

/** Refused with code 100, and with this subcode where the provider's lists have one. */
export const refused = (subcode?: number): Verdict => ({
  code: 100,
  ...(subcode === undefined ? {} : { subcode }),
})
export const rejected: Verdict = { rejected: 'INVALID_FORMAT' }

/** Builds entries from a draft that is accepted, whose fields each row replaces. The id is the name. */
export const buildEntries = (base: Fields, rows: readonly Row[]): CorpusEntry[] =>
  rows.map(([id, fields, verdict, source, certainty = 'certain']) => ({
    id,
    draft: TemplateDraft.parse({ name: id, language: 'en_US', ...base, ...fields }),
    verdict,
    source,
    certainty,
  }))
