import { codeExpiration, PACKAGE_NAME, SIGNATURE_HASH } from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { noFindings, finding, type LintRule, type RuleSource } from './rule.ts'
import { quote } from './text.ts'

const { min, max } = codeExpiration

const zeroTap = {
  'buttons[0].otp_type': 'ZERO_TAP',
  'buttons[0].zero_tap_terms_accepted': true,
  'buttons[0].supported_apps': [{ package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' }],
}

export const authenticationRules: readonly LintRule[] = [
  {
    id: 'authentication.body_text',
    severity: 'error',
    source: 'spec',
    about: 'No text: the provider writes it.',
    find: ({ draft: { body }, isCode }) =>
      isCode && !isBlank(body.text)
        ? finding(
            'body.text',
            'The provider writes the text of AUTHENTICATION templates.',
            'Leave out body.text; add_security_recommendation adds a sentence.',
          )
        : noFindings,
    breaks: { base: 'code', set: { 'body.text': 'Your code is {{1}}.' }, at: 'body.text' },
    passes: { base: 'code', set: { body: {} } },
  },
  {
    id: 'authentication.body_examples',
    severity: 'error',
    source: 'guidelines',
    about: 'No samples: the provider writes the text.',
    find: ({ draft: { body }, isCode }) =>
      isCode && (body.examples ?? []).length > 0
        ? finding(
            'body.examples',
            'The provider writes the text of an AUTHENTICATION template, which takes no samples.',
            'Leave out body.examples.',
          )
        : noFindings,
    breaks: { base: 'code', set: { 'body.examples': ['123456'] }, at: 'body.examples' },
    passes: { base: 'code', set: { 'body.examples': [] } },
  },
  {
    id: 'authentication.header',
    severity: 'error',
    source: 'guidelines',
    about: 'No header.',
    find: ({ draft: { header }, isCode }) =>
      isCode && header
        ? finding('header', 'AUTHENTICATION templates have no header.', 'Leave out the header.')
        : noFindings,
    breaks: { base: 'code', set: { header: { format: 'TEXT', text: 'Your code' } }, at: 'header' },
    passes: { base: 'code' },
  },
  {
    id: 'authentication.footer_text',
    severity: 'error',
    source: 'guidelines',
    about: 'No footer text; only the minutes until the code expires.',
    find: ({ draft: { footer }, isCode }) =>
      isCode && !isBlank(footer?.text)
        ? finding(
            'footer.text',
            'The provider writes the footer of AUTHENTICATION templates.',
            'Leave out footer.text; give code_expiration_minutes instead.',
          )
        : noFindings,
    breaks: { base: 'code', set: { 'footer.text': 'Lasts ten minutes' }, at: 'footer.text' },
    passes: { base: 'code', set: { 'footer.code_expiration_minutes': 10 } },
  },
  {
    id: 'authentication.button',
    severity: 'error',
    source: 'guidelines',
    about: 'Exactly one button, of the type `OTP`.',
    find: ({ draft: { buttons = [] }, isCode }) => {
      if (!isCode) return noFindings
      const fix = 'Use one button: {"type": "OTP", "otp_type": "COPY_CODE"}.'
      if (buttons.length !== 1)
        return finding(
          'buttons',
          `AUTHENTICATION templates have one OTP button, not ${buttons.length} buttons.`,
          fix,
        )
      return buttons[0]!.type === 'OTP'
        ? noFindings
        : finding(
            'buttons[0].type',
            `The button of an AUTHENTICATION template is of the type OTP, not ${buttons[0]!.type}.`,
            fix,
          )
    },
    breaks: { base: 'code', set: { buttons: [] }, at: 'buttons' },
    passes: { base: 'code' },
  },
  {
    id: 'authentication.carousel',
    severity: 'error',
    source: 'guidelines',
    about: 'No carousel.',
    find: ({ draft: { carousel }, isCode }) =>
      isCode && carousel
        ? finding('carousel', 'AUTHENTICATION templates have no carousel.', 'Leave out the carousel.')
        : noFindings,
    breaks: { base: 'code', set: { carousel: { cards: [] } }, at: 'carousel', also: ['carousel.top_level'] },
    passes: { base: 'carousel' },
  },
  {
    id: 'authentication.offer',
    severity: 'error',
    source: 'guidelines',
    about: 'No limited-time offer.',
    find: ({ draft, isCode }) =>
      isCode && draft.limited_time_offer
        ? finding(
            'limited_time_offer',
            'AUTHENTICATION templates have no limited-time offer.',
            'Leave out the offer.',
          )
        : noFindings,
    breaks: { base: 'code', set: { limited_time_offer: { text: 'Spring offer' } }, at: 'limited_time_offer' },
    passes: { base: 'offer' },
  },
  {
    id: 'footer.expiration_required',
    severity: 'error',
    source: 'guidelines',
    about: 'The footer of a code has the minutes until the code expires.',
    find: ({ draft: { footer }, isCode }) =>
      isCode && footer && isBlank(footer.text) && footer.code_expiration_minutes === undefined
        ? finding(
            'footer.code_expiration_minutes',
            'The footer is empty.',
            'Give code_expiration_minutes, or leave out the footer.',
          )
        : noFindings,
    breaks: { base: 'code', set: { footer: {} }, at: 'footer.code_expiration_minutes' },
    passes: { base: 'code', set: { 'footer.code_expiration_minutes': 10 } },
  },
  {
    id: 'footer.expiration_range',
    severity: 'error',
    source: 'spec',
    about: `A code expires after ${min} to ${max} minutes.`,
    find: ({ draft: { footer }, isCode }) => {
      const minutes = footer?.code_expiration_minutes
      return !isCode || minutes === undefined || (minutes >= min && minutes <= max)
        ? noFindings
        : finding(
            'footer.code_expiration_minutes',
            `A code expires after ${min} to ${max} minutes, not ${minutes}.`,
            `Write ${minutes < min ? min : max}, or another number in between.`,
          )
    },
    breaks: {
      base: 'code',
      set: { 'footer.code_expiration_minutes': 91 },
      at: 'footer.code_expiration_minutes',
    },
    passes: { base: 'code', set: { 'footer.code_expiration_minutes': 90 } },
  },
  {
    id: 'footer.expiration_category',
    severity: 'error',
    source: 'spec',
    about: 'The minutes until a code expires are only for `AUTHENTICATION`.',
    find: ({ draft: { footer }, isCode }) =>
      !isCode && footer?.code_expiration_minutes !== undefined
        ? finding(
            'footer.code_expiration_minutes',
            'Only codes expire: the template is not of the category AUTHENTICATION.',
            'Leave out code_expiration_minutes.',
          )
        : noFindings,
    breaks: {
      set: { footer: { text: 'Thank you', code_expiration_minutes: 10 } },
      at: 'footer.code_expiration_minutes',
    },
    passes: { set: { footer: { text: 'Thank you' } } },
  },
  {
    id: 'buttons.otp_category',
    severity: 'error',
    source: 'guidelines',
    about: 'OTP buttons are only for `AUTHENTICATION`.',
    find: ({ buttons, isCode }) =>
      buttons.flatMap(({ path, button }) =>
        !isCode && button.type === 'OTP'
          ? finding(
              `${path}.type`,
              'Only AUTHENTICATION templates have an OTP button.',
              'Choose the category AUTHENTICATION, or another type of button.',
            )
          : noFindings,
      ),
    breaks: { set: { buttons: [{ type: 'OTP' }] }, at: 'buttons[0].type' },
    passes: { base: 'code' },
  },
  {
    id: 'otp.apps_required',
    severity: 'error',
    source: 'spec',
    about: 'ONE_TAP and ZERO_TAP name the apps that receive the code.',
    find: ({ buttons, isCode }) =>
      buttons.flatMap(({ path, button: { type, otp_type: kind = 'COPY_CODE', supported_apps: apps = [] } }) =>
        isCode && type === 'OTP' && kind !== 'COPY_CODE' && apps.length === 0
          ? finding(
              `${path}.supported_apps`,
              `${kind} names no app that receives the code.`,
              'Give package_name and signature_hash of the app, or choose COPY_CODE.',
            )
          : noFindings,
      ),
    breaks: { base: 'code', set: { 'buttons[0].otp_type': 'ONE_TAP' }, at: 'buttons[0].supported_apps' },
    passes: {
      base: 'code',
      set: {
        'buttons[0].otp_type': 'ONE_TAP',
        'buttons[0].supported_apps': [{ package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' }],
      },
    },
  },
  {
    id: 'otp.zero_tap_terms',
    severity: 'error',
    source: 'guidelines',
    about: 'ZERO_TAP says that you accept its terms; without that the provider creates no template.',
    find: ({ buttons, isCode }) =>
      buttons.flatMap(({ path, button: { type, otp_type: kind, zero_tap_terms_accepted: accepted } }) =>
        isCode && type === 'OTP' && kind === 'ZERO_TAP' && accepted !== true
          ? finding(
              `${path}.zero_tap_terms_accepted`,
              'ZERO_TAP requires that its terms are accepted.',
              'Set zero_tap_terms_accepted to true if you accept them, or choose ONE_TAP.',
            )
          : noFindings,
      ),
    breaks: {
      base: 'code',
      set: { ...zeroTap, 'buttons[0].zero_tap_terms_accepted': false },
      at: 'buttons[0].zero_tap_terms_accepted',
    },
    passes: { base: 'code', set: zeroTap },
  },
  ...appRules(),
]

/** Apps are checked where they are sent: not with COPY_CODE, where `buttons.unused` reports them. */
function appRules(): LintRule[] {
  const rule = (
    name: string,
    field: 'package_name' | 'signature_hash',
    source: RuleSource,
    form: RegExp,
    about: string,
    fix: string,
    bad: string,
  ): LintRule => ({
    id: `otp.${name}`,
    severity: 'error',
    source,
    about,
    find: ({ buttons, isCode }) =>
      buttons.flatMap(({ path, button }) =>
        !isCode || button.type !== 'OTP' || (button.otp_type ?? 'COPY_CODE') === 'COPY_CODE'
          ? noFindings
          : (button.supported_apps ?? []).flatMap((app, i) =>
              form.test(app[field])
                ? noFindings
                : finding(
                    `${path}.supported_apps[${i}].${field}`,
                    `${quote(app[field])} is not a ${name.replace('_', ' ')}.`,
                    fix,
                  ),
            ),
      ),
    breaks: {
      base: 'code',
      set: { ...zeroTap, [`buttons[0].supported_apps[0].${field}`]: bad },
      at: `buttons[0].supported_apps[0].${field}`,
    },
    passes: { base: 'code', set: zeroTap },
  })
  return [
    rule(
      'package_name',
      'package_name',
      'guidelines',
      PACKAGE_NAME,
      'The name of an Android package: two or more parts of letters, digits and underscores, joined by dots; ' +
        'at most 224 characters.',
      'Write it as in the app, such as "com.example.shop".',
      'shop',
    ),
    rule(
      'signature_hash',
      'signature_hash',
      'guidelines',
      SIGNATURE_HASH,
      'A signature hash has 11 characters of base64.',
      "Write the 11 characters of the hash of the app's signing key.",
      'K8a',
    ),
  ]
}
