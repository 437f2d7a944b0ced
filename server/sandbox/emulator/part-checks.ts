import { findMedia } from '../../../storage/sandbox/files.ts'
import { type Call, isText, textWithin } from './call.ts'
import { badValue, invalid, missing, refuse } from './errors.ts'

/** Parts that stand in messages, in headers of interactive messages and in templates' parameters alike. */
export const MEDIA = ['image', 'video', 'audio', 'document', 'sticker'] as const
const CAPTIONED: readonly string[] = ['image', 'video', 'document']

const httpUrl = (value: unknown): boolean =>
  isText(value) && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)

/** A file by the id of an upload or by a link, which the sandbox does not fetch. */
export const checkMedia = async (call: Call, type: string, part: Record<string, unknown>): Promise<void> => {
  if (part.id === undefined && part.link === undefined)
    throw missing(`Param ${type} must have one of id and link.`)
  if (part.id !== undefined) {
    const known =
      isText(part.id) && /^[\w.:-]{1,200}$/.test(part.id)
        ? await findMedia(call.db, part.id, call.now())
        : undefined
    if (!known)
      throw invalid(`Param ${type}['id'] is not a valid whatsapp business account media attachment ID`)
    const family = type === 'sticker' ? 'image' : type
    if (family !== 'document' && !known.mime_type.startsWith(`${family}/`))
      throw refuse(131053, `Media of type ${known.mime_type} cannot be sent as ${type}.`)
  } else if (!httpUrl(part.link)) throw badValue(`Param ${type}['link'] is not a valid URI.`)
  if (part.caption !== undefined) {
    if (!CAPTIONED.includes(type)) throw badValue(`Unexpected key "caption" on param "${type}".`)
    textWithin(part.caption, `${type}['caption']`, 1024, 0)
  }
  if (part.filename !== undefined) {
    if (type !== 'document') throw badValue(`Unexpected key "filename" on param "${type}".`)
    textWithin(part.filename, `${type}['filename']`, 240)
  }
}

const within = (value: unknown, most: number): boolean =>
  (typeof value === 'number' || (isText(value) && /^-?\d{1,3}(?:\.\d{1,20})?$/.test(value))) &&
  Math.abs(Number(value)) <= most

export const checkLocation = (part: Record<string, unknown>): void => {
  if (part.latitude === undefined || part.longitude === undefined)
    throw missing('Param location must have latitude and longitude.')
  if (!within(part.latitude, 90)) throw badValue("Param location['latitude'] must be between -90 and 90.")
  if (!within(part.longitude, 180))
    throw badValue("Param location['longitude'] must be between -180 and 180.")
  for (const name of ['name', 'address'])
    if (part[name] !== undefined) textWithin(part[name], `location['${name}']`, 1000, 0)
}
