import { sampleTypes } from '../../../catalog/templates/rules.ts'
import { isObject } from '../../../catalog/values.ts'
import type { Db } from '../../../storage/database.ts'
import { findUploadTypes, insertKnownUploads } from '../storage/files.ts'
import { isNonEmptyText } from './call.ts'
import { type ProviderError, providerError } from './errors.ts'

type Part = Record<string, unknown>

/** The sample of a media header: of the message or of a card. */
type HeaderSample = { format: string; handle: string }

/** Handles are ASCII; anything else cannot be one, and need not be looked up. */
const isStorableHandle = (handle: unknown): handle is string =>
  isNonEmptyText(handle) && /^[\x21-\x7e\n]{1,4000}$/.test(handle)

/** Lists the samples of components that passed the other checks; the others are left out. */
export const listHeaderSamples = (components: readonly unknown[]): HeaderSample[] =>
  components.filter(isObject).flatMap((part): HeaderSample[] => {
    if (Array.isArray(part.cards))
      return part.cards
        .filter(isObject)
        .flatMap((card) => (Array.isArray(card.components) ? listHeaderSamples(card.components) : []))
    const format = String(part.format).toUpperCase()
    if (String(part.type).toUpperCase() !== 'HEADER' || !Object.hasOwn(sampleTypes, format)) return []
    const handles = isObject(part.example) ? part.example.header_handle : undefined
    const [handle]: unknown[] = Array.isArray(handles) ? handles : []
    return isNonEmptyText(handle) ? [{ format, handle }] : []
  })

/**
 * The provider's documents name no error for samples. Code and subcode are those that several libraries report
 * for a handle that the provider does not know; that a sample of another type gets the same is assumed.
 */
const invalidHandle = (sentence: string): ProviderError =>
  providerError(131009, sentence, {
    message: '(#131009) Parameter value is not valid',
    subcode: 2494102,
    title: 'Invalid media handle',
    userMessage: sentence,
    transient: false,
  })

/** Throws when a header has a sample that was not uploaded, or one of another type. `types`: by handle. */
export const checkSampleTypes = (
  components: readonly unknown[],
  types: ReadonlyMap<string, string>,
): void => {
  for (const { format, handle } of listHeaderSamples(components)) {
    const type = types.get(handle)
    if (type === undefined)
      throw invalidHandle(
        'The media handle is not of an uploaded file. Upload the sample again, and send the handle it gets.',
      )
    if (!sampleTypes[format]!.includes(type))
      throw invalidHandle(
        `The sample of a header of format ${format} must be of type {${sampleTypes[format]!.join(', ')}}, ` +
          `and is of type ${type}.`,
      )
  }
}

/** Throws unless each sample of a template was uploaded and fits its header. */
export const requireUploadedSamples = async (db: Db, components: readonly Part[]): Promise<void> => {
  const handles = listHeaderSamples(components).map(({ handle }) => handle)
  if (handles.length === 0) return
  checkSampleTypes(components, await findUploadTypes(db, handles.filter(isStorableHandle)))
}

/** Adds the samples of a template that was not created here: its handles can be used again. */
export const importSamples = async (db: Db, components: readonly unknown[]): Promise<void> => {
  const samples = new Map(
    listHeaderSamples(components)
      .filter(({ handle }) => isStorableHandle(handle))
      .map(({ handle, format }) => [handle, { handle, file_type: sampleTypes[format]![0]! }]),
  )
  await insertKnownUploads(db, [...samples.values()])
}
