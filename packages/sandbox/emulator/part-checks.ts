import { findSandboxMedia } from '../storage/files.ts'
import { type SandboxCall, isNonEmptyText, requireText } from './call.ts'
import { badParameterValue, invalidParameter, missingPart, providerError } from './errors.ts'

/** Parts that occur in messages, in headers of interactive messages and in template parameters. */
export const MEDIA_TYPES = ['image', 'video', 'audio', 'document', 'sticker'] as const
const CAPTIONED_TYPES: readonly string[] = ['image', 'video', 'document']

const isHttpUrl = (value: unknown): boolean =>
  isNonEmptyText(value) && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)

/**
 * Checks a file by the id of an upload or by a link; the sandbox does not fetch links. Returns the type of an
 * upload.
 */
export const checkMedia = async (
  call: SandboxCall,
  type: string,
  part: Record<string, unknown>,
): Promise<string | undefined> => {
  let uploadedType: string | undefined
  if (part.id === undefined && part.link === undefined)
    throw missingPart(`Param ${type} must have one of id and link.`)
  if (part.id !== undefined) {
    const known =
      isNonEmptyText(part.id) && /^[\w.:-]{1,200}$/.test(part.id)
        ? await findSandboxMedia(call.db, part.id, call.now())
        : undefined
    if (!known)
      throw invalidParameter(
        `Param ${type}['id'] is not a valid whatsapp business account media attachment ID`,
      )
    const family = type === 'sticker' ? 'image' : type
    if (family !== 'document' && !known.mime_type.startsWith(`${family}/`))
      throw providerError(131053, `Media of type ${known.mime_type} cannot be sent as ${type}.`)
    uploadedType = known.mime_type
  } else if (!isHttpUrl(part.link)) throw badParameterValue(`Param ${type}['link'] is not a valid URI.`)
  if (part.caption !== undefined) {
    if (!CAPTIONED_TYPES.includes(type))
      throw badParameterValue(`Unexpected key "caption" on param "${type}".`)
    requireText(part.caption, `${type}['caption']`, 1024, 0)
  }
  if (part.filename !== undefined) {
    if (type !== 'document') throw badParameterValue(`Unexpected key "filename" on param "${type}".`)
    requireText(part.filename, `${type}['filename']`, 240)
  }
  return uploadedType
}

const isWithin = (value: unknown, max: number): boolean =>
  (typeof value === 'number' || (isNonEmptyText(value) && /^-?\d{1,3}(?:\.\d{1,20})?$/.test(value))) &&
  Math.abs(Number(value)) <= max

export const checkLocation = (part: Record<string, unknown>): void => {
  if (part.latitude === undefined || part.longitude === undefined)
    throw missingPart('Param location must have latitude and longitude.')
  if (!isWithin(part.latitude, 90))
    throw badParameterValue("Param location['latitude'] must be between -90 and 90.")
  if (!isWithin(part.longitude, 180))
    throw badParameterValue("Param location['longitude'] must be between -180 and 180.")
  for (const name of ['name', 'address'])
    if (part[name] !== undefined) requireText(part[name], `location['${name}']`, 1000, 0)
}
