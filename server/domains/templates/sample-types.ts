import { sampleTypes } from '../../../catalog/templates/rules.ts'

/** What the file of a media header may be. */
const WORDS: Readonly<Record<string, string>> = {
  IMAGE: 'a JPEG or PNG image',
  VIDEO: 'an MP4 video',
  DOCUMENT: 'a PDF document',
}

/** Says in words what the file of a header of this format is; undefined when the header is not of media. */
export const describeHeaderFile = (format: string): string | undefined => WORDS[format]

/**
 * Returns the media type that a handle of the provider names. Handles look like `4:<name>:<type>:<signature>`,
 * with name and type in base64; undefined when one does not.
 */
const parseHandleType = (handle: string): string | undefined => {
  const match = /^\d+:[\w+/=-]*:([\w+/=-]+)(?::|$)/.exec(handle)
  if (!match) return undefined
  const type = Buffer.from(match[1]!, 'base64').toString('latin1').toLowerCase()
  return /^[a-z]+\/[a-z0-9.+-]+$/.test(type) ? type : undefined
}

/** Whether the text is the handle of a sample, which a send does not take. */
export const isSampleHandle = (text: string): boolean => /^\d+:[\w+/=-]*:/.test(text)

/**
 * Says what is wrong with the handle of a sample in a header of this format; undefined when nothing is, or
 * when only the provider knows.
 */
export const findHandleFault = (
  format: string,
  handle: string,
): { problem: string; fix: string } | undefined => {
  const words = WORDS[format]
  if (words === undefined) return undefined
  if (/^https?:/i.test(handle.trim()))
    return {
      problem: 'is an address; the provider takes only the handle of an uploaded sample',
      fix: 'Upload the file with messaging_upload_template_sample, and give its media_handle.',
    }
  const type = parseHandleType(handle)
  return type === undefined || sampleTypes[format]!.includes(type)
    ? undefined
    : {
        problem: `is of a sample of type ${type}; the sample of a header of format ${format} is ${words}`,
        fix: `Upload ${words}, or choose the format of the sample.`,
      }
}

/** Ends of the names of files that fit a header, and of other media files, which fit none. */
const EXTENSIONS: Readonly<Record<string, readonly string[]>> = {
  IMAGE: ['jpg', 'jpeg', 'png'],
  VIDEO: ['mp4', '3gp'],
  DOCUMENT: ['pdf'],
  none: (
    'gif webp heic bmp tif tiff svg mov avi mkv webm ' +
    'doc docx xls xlsx ppt pptx txt mp3 ogg opus aac amr m4a wav'
  ).split(' '),
}
const knownExtensions: ReadonlySet<string> = new Set(Object.values(EXTENSIONS).flat())

/**
 * Says what is wrong with the URL of a file for a header of this format; undefined when nothing is, or when the
 * end of its path tells nothing.
 */
export const findUrlFault = (format: string, url: string): { problem: string; fix: string } | undefined => {
  const words = WORDS[format]
  const extension = /\.([a-z0-9]{2,5})$/i.exec(URL.parse(url)?.pathname ?? '')?.[1]?.toLowerCase()
  if (words === undefined || extension === undefined || !knownExtensions.has(extension)) return undefined
  return EXTENSIONS[format]!.includes(extension)
    ? undefined
    : {
        problem: `names a .${extension} file, and the header of format ${format} takes ${words}`,
        fix: `Send the URL of ${words}.`,
      }
}
